"""What is translated of an HTML document, and that nothing else changes: justhtml, a parser that we do
not use, is the judge."""

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from justhtml import JustHTML

from nmt.documents import html_text
from nmt.documents.inline import AlignedTranslation, InlineItem, TaggedText, join_line, locate_words
from nmt.errors import DataError
from nmt.text.sentences import SplitLine

# ---- html text ---------------------------------------------------------------------------------------------


DOCUMENT = """<!doctype html><p class="a>b">It's <b>big</b> &amp; small.</p>
<script>if (a < b) alert("no")</script> 1 < 2 <!-- <p>no</p> --><br/>
<STYLE>p {}</STYLE><pre>keep  it</pre><styled>yes</styled>"""

# Documents in which a tag, a comment or a script does not end where it seems to, or that browsers mend.
VECTORS = [
    '<p title="a > b <img src=x onerror=alert(1)>">text</p>',
    '<p title=\'">\' alt=">">text <b>bold</p> more',
    "<a href=x title=a>b>text</a> text",
    '<a title="</a><script>alert(1)</script>">text</a>',
    '<a b"<img src=x>"=">text</a>text',
    '<a ="<b>" \'>text</a>',
    '<p/title=">"/>text',
    "<!--> <b>text</b> --> text",
    "<!---> text --><i>text</i>",
    "<!-- a --!> text <!-- b -> text --> text",
    "<!-- > <b>text</b>",
    "<!text> text <?php echo '<b>text</b>' ?> text",
    "</ text> text </> text </1> text",
    "<![CDATA[ <b>text</b> ]]> text",
    "<svg><![CDATA[ <b>text</b> ]]> text</svg> text",
    "<svg><style><img src=x title='</style>text'></style></svg>text",
    '<svg></p><style><a title="</style><img src=x onerror=alert(1)>">text',
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1&gt;">text',
    "<svg><title><b>text</b></title><desc>text</desc></svg> text",
    "<math><mi>text</mi><annotation-xml encoding='text/html'><b>text</b></annotation-xml></math>",
    "<script>text<!--<script>text</script>text--></script>text",
    "<script>text</scripty>text</script >text",
    "<style>text</style x>text<xmp><b>text</b></xmp>text",
    "<title><b>text</b></title>text<textarea><b>text</textarea>text",
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">text',
    "<noscript><a title=\"</noscript><p title='\"></noscript>text'>text",
    "<noscript><!-- </noscript><b>text</b> --></noscript>text",
    "<iframe><b>text</iframe>text<noembed>text</noembed><noframes>text</noframes>text",
    "<plaintext><b>text</b>text",
    "<table>text<tr><td>text</table>text<table><b>text</b><i>text</table>text",
    "<select>text<option>text<b>text</select>text",
    "<template>text<b>text</b></template>text",
    "<b>text<i>text</b>text</i>text",
    "<a>text<a>text</a>text</a>text",
    "<p>text<b>text<p>text</b>text",
    "<nobr>text<nobr>text</nobr>text</nobr>",
    "<b><p>text</b>text</p>text",
    "<frameset><frame></frameset>text",
    "text<frameset><frame></frameset>",
    "<head>text<b>text</head>text</html>text<body class=x>text",
    "te\0xt <b\0>text</b\0> <\0b>text",
    "&lt;script&gt;text&lt;/script&gt; &#60;b&#62; &ltb&gt; &amp;lt;i> text",
    "&#0; &#x110000; &#xd800; &notit; &not text",
    "text < text <b>text <</b> text <",
    "<b>text</b",
    "<b>text</b title='>'>text",
    "<B TITLE=a>Text</b> <İ>text</İ>",
    "text<br><img alt='text'><wbr>text<code>te<b>xt</code>text</b>",
    "<p translate=no>text <b>text</b></p><p>text <i translate='no'>text</i> text</p>",
    "<button>text<button>text</button>text</button>",
    "<ruby>text<rt>text</ruby>text<li>text<li>text",
    "<object><param>text</object><font color=a>text<font color=b>text</font></font>",
    "\ufeff<b>text</b>\r\ntext\r<i>\ntext</i>",
]
PARTS = [
    *"<>\"'/=!-?& \n\0ab&",
    *("<i x='>'>", '<a href="b>c">', "<img alt='a b'>", '<span a="\'">', "cat runs. "),
    *"<b> </b> </i> </a> <p> </p> <br> <!-- --> <![CDATA[ ]]> <svg> </svg> <math> <mi> </math>".split(),
    *"</table> <tr> <td> <script> </script> <style> </style> <title> </title> <textarea> </textarea>".split(),
    *"<select> <option> <template> </template> <code> </code> <noscript> </noscript> <frameset>".split(),
    *"</body> </span> &lt; &amp; &#x3c; &quot; dog It <foreignObject> <nobr> </nobr> <font>".split(),
    *"</font> <xmp> <iframe> <table>".split(),
]
DOCUMENTS = st.lists(st.sampled_from(PARTS), max_size=25).map("".join)
HOSTILE = [
    *("\0", "", " ", '"><img src=x onerror=alert(1)>'),
    *"<script>alert(1)</script> '> --> ]]> </title> <!-- <b> </script> </textarea>".split(),
    *"<svg/onload=alert(1)> &lt;b&gt; &#60;b> </p> {{x}} word dog".split(),
]
NO_TEXT = ("script", "style", "textarea", "iframe", "xmp", "noembed", "noframes")


def texts(document: str) -> list[str]:
    return html_text.parse_html(document).lines


def upper(line: str) -> AlignedTranslation:
    words = re.findall(r"\w+|[^\w\s]", line)
    points = [(number, number) for number in range(len(words))]
    return AlignedTranslation(line.upper(), words, [word.upper() for word in words], points)


def as_upper(document: str) -> str:
    parsed = html_text.parse_html(document)
    return parsed.render(list(map(upper, parsed.lines)))


def parts_of(document: str, fragment: bool, scripting: bool) -> Counter[str]:
    """Elements with their attributes, comments, and the text of elements that is no text."""
    tree = JustHTML(document, sanitize=False, fragment=fragment, scripting_enabled=scripting)

    def walk() -> Iterator[str]:
        waiting = [(tree.root, False)]
        while waiting:
            node, verbatim = waiting.pop()
            name = f"{node.namespace} {node.name}"
            if node.name == "#text":
                if verbatim:
                    yield f"{name} {node.data}"
                continue
            attributes = sorted((node.attrs or {}).items(), key=str)
            yield f"{name} {attributes} {node.data if node.name == '#comment' else ''}"
            inner = verbatim or node.name in NO_TEXT
            content = getattr(node, "template_content", None)
            waiting += [(child, inner) for child in [*(node.children or []), *([content] if content else [])]]

    return Counter(walk())


def assert_nothing_but_text_changes(
    document: str, translations: Sequence[AlignedTranslation] | None = None
) -> None:
    parsed = html_text.parse_html(document)
    target = parsed.render(translations or list(map(upper, parsed.lines)))
    for fragment in (False, True):
        for scripting in (False, True):
            before, after = (parts_of(text, fragment, scripting) for text in (document, target))
            assert after == before, (fragment, scripting, target)


# ---- what is translated ------------------------------------------------------------------------------------


def test_a_sentence_with_inline_tags_is_one() -> None:
    assert texts(DOCUMENT) == ["It's big & small.", "1 < 2", "yes"]
    assert texts("A <b>Dog</b> Runs.<br>It <a href='x>y'><i>barks</i></a>.") == ["A Dog Runs.", "It barks."]
    assert texts("İİİİ<SCRIPT>no</SCRIPT>yes") == ["İİİİ", "yes"]
    assert texts(
        "<title>Yes</title><textarea>no</textarea><p translate=no>no</p><svg><text>no</text></svg>"
    ) == ["Yes"]


def test_the_rest_stays_as_it_is() -> None:
    target = as_upper(DOCUMENT)
    assert target.lower() == DOCUMENT.replace(" 1 < 2", " 1 &lt; 2").lower()
    assert '<p class="a>b">IT\'S <b>BIG</b> &amp; SMALL.</p>' in target
    assert 'alert("no")' in target and "<!-- <p>no</p> -->" in target and "keep  it" in target


def test_what_is_not_translated_stands_in_its_sentence() -> None:
    target = as_upper("See the <code>ls  -l</code> command<!-- x -->, <img alt='a > b'>and go.")
    assert target == "SEE THE <code>ls  -l</code> COMMAND<!-- x -->, <img alt='a > b'>AND GO."


def test_tags_without_their_partners_end_a_sentence() -> None:
    assert texts("<b>one <i>two</b> three</i>") == ["one", "two", "three"]
    assert as_upper("<b>one <i>two</b> three</i>") == "<b>ONE <i>TWO</b> THREE</i>"
    assert texts("one <b>" * 300 + "x" + "</b>" * 300)[0] == "one"


def test_a_translation_cannot_become_markup() -> None:
    parsed = html_text.parse_html("<p> x </p>")
    assert parsed.render([AlignedTranslation("<script>&", ["x"])]) == "<p> &lt;script&gt;&amp; </p>"


def test_what_nests_too_deeply_is_refused() -> None:
    for part in ("<div>", "<b>x", "<svg>"):
        with pytest.raises(DataError, match="HTML"):
            html_text.parse_html(part * 100_000)
    assert len(texts("<p>x<li>y" * 2000)) == 4000


# ---- what may not change -----------------------------------------------------------------------------------


@pytest.mark.parametrize("document", VECTORS)
def test_nothing_but_text_changes_in_documents_that_deceive(document: str) -> None:
    assert_nothing_but_text_changes(document)
    lines = texts(document)
    for text in HOSTILE:
        row = AlignedTranslation(text, ["text"], text.split(), [(0, 0)])
        assert_nothing_but_text_changes(document, [row] * len(lines))


@pytest.mark.parametrize(
    "document", ["", "<", "a<", "<p", "<!--", "<script>x", "</", "<p>a</p", "&#0;", "<a b='c>d"]
)
def test_without_words_a_document_stays_as_it_is(document: str) -> None:
    assert "".join(token.raw for token in html_text.tokenize(document)) == document
    assert html.unescape(as_upper(document)).lower() == html.unescape(document)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, list[AlignedTranslation]]:
    """A document, and translations of its lines by an engine that is not to be trusted."""
    document = draw(DOCUMENTS)
    rows = []
    for line in html_text.parse_html(document).lines:
        words = draw(st.lists(st.sampled_from(HOSTILE), max_size=6))
        links = st.tuples(st.integers(0, 6), st.integers(0, 6))
        alignment = draw(st.lists(links, max_size=8))
        text = draw(st.sampled_from(["", " "])).join(words)
        rows.append(AlignedTranslation(text, line.split(), words, alignment))
    return document, rows


@settings(deadline=None, max_examples=150)
@given(documents())
@example(("<b>dog</b> <i>cat</i>", [AlignedTranslation("<b> </i>", ["dog", "cat"], ["<b>", "</i>"])]))
def test_nothing_but_text_changes_in_any_document(case: tuple[str, list[AlignedTranslation]]) -> None:
    assert_nothing_but_text_changes(*case)


@settings(deadline=None, max_examples=150)
@given(DOCUMENTS)
def test_the_tokens_are_the_document(document: str) -> None:
    assert "".join(token.raw for token in html_text.tokenize(document)) == document


@pytest.mark.ci
@pytest.mark.parametrize(
    "part", ["<!--", "<p", "< ", "<!", "&", "</script", "<a b='", "<i></i>", "<title>", "</b>"]
)
def test_work_grows_with_the_document(part: str) -> None:
    """A quadratic search would take minutes."""
    as_upper(part * 50_000)


# ---- inline tags -------------------------------------------------------------------------------------------
# Where inline tags stand in a translation.


Points = list[tuple[int, int]]


def placed(document: str, source: str, target: str, alignment: Points, text: str = "") -> str:
    """The translation of a document of one sentence, given its words."""
    translation = AlignedTranslation(text or target, source.split(), target.split(), alignment)
    return html_text.parse_html(document).render([translation])


def diagonal(words: int) -> Points:
    return [(number, number) for number in range(words)]


def test_a_pair_encloses_the_words_of_its_words() -> None:
    """The black <i>cat</i> sleeps: in French the adjective comes last, and articles come along."""
    found = placed("The <b>black <i>cat</i></b> sleeps .", "The black cat sleeps .", "Le chat noir dort .",
                   [(0, 0), (1, 2), (2, 1), (3, 3), (4, 4)])  # fmt: skip
    assert found == "Le <b><i>chat</i> noir</b> dort ."
    found = placed("<b>black</b> <i>cat</i>", "black cat", "chat noir", [(0, 1), (1, 0)])
    assert found == "<i>chat</i> <b>noir</b>"


def test_a_stray_link_does_not_stretch_a_pair() -> None:
    found = placed("<b>a</b> b c d e", "a b c d e", "A B C D E", [*diagonal(5), (0, 4)])
    assert found == "<b>A</b> B C D E"


def test_without_an_alignment_tags_stand_as_far_into_the_text() -> None:
    assert placed("one <b>two</b> three four", "one two three four", "1 2 3 4", []) == "1 <b>2</b> 3 4"
    assert placed("<b>one two</b> three four", "", "A B C D", []) == "<b>A B</b> C D"
    assert placed("<b>one</b> <i>two</i>", "one two", "only", []).count("<") == 4


def test_words_are_found_in_detokenized_text() -> None:
    document, words = "l'<b>homme</b> dort !", "l&apos; homme dort !"
    assert (
        placed(document, words, "the man sleeps !", diagonal(4), "The man sleeps!")
        == "The <b>man</b> sleeps!"
    )
    located = locate_words(["l&apos;", "HOMME", "?", "dort"], "L'homme dort")
    assert located == [(0, 2), (2, 7), (7, 7), (8, 12)]
    assert locate_words([], "a bc") == [(0, 1), (2, 4)]


def test_something_without_an_end_follows_its_word() -> None:
    """With the blanks that it had."""
    words, target, points = "one two three", "3 2 1", [(0, 2), (1, 1), (2, 0)]
    for document, expected in {
        "one two<img> three": "3 2<img> 1",
        "one two <img>three": "3 2 <img>1",
        "one two <code>x</code> three": "3 2 <code>x</code> 1",
        "one two<wbr>three": "3 2<wbr> 1",
    }.items():
        assert placed(document, words, target, points) == expected


def test_pairs_stay_in_each_other_when_their_words_do_not() -> None:
    found = placed("<a><b>x</b> y</a> z", "x y z", "1 2 3", [(0, 2), (1, 0), (2, 1)])
    assert found.index("<a>") < found.index("<b>") < found.index("</b>") < found.index("</a>")


def test_without_a_translation_the_sentence_stays() -> None:
    assert placed(" a <b>b</b> &lt; ", "a b <", "", []) == " a <b>b</b> &lt; "


@st.composite
def tagged_sentences(draw: st.DrawFn) -> tuple[str, AlignedTranslation]:
    """A sentence with balanced tags, and any translation."""
    words = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=8))
    parts: list[str] = []
    opened: list[str] = []
    for word in words:
        name = draw(st.sampled_from(["", "", "b", "i", "u"]))
        if name:
            opened.append(name)
            parts.append(f"<{name}>")
        parts += [
            word,
            draw(st.sampled_from(["", " "])),
            draw(st.sampled_from(["", "", "<img>", "<!--x-->"])),
        ]
        while opened and draw(st.sampled_from(["open", ""])) == "":
            parts.append(f"</{opened.pop()}>")
    parts += [f"</{name}>" for name in reversed(opened)]
    target = draw(st.lists(st.sampled_from(["A", "B.", "<b>", "&"]), max_size=8))
    points = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
    return "".join(parts), AlignedTranslation(" ".join(target), words, target, points)


@pytest.mark.ci
@settings(deadline=None, max_examples=200)
@given(tagged_sentences())
def test_every_tag_stands_as_often_as_it_did_and_no_word_is_lost(
    case: tuple[str, AlignedTranslation],
) -> None:
    document, translation = case
    found = html_text.parse_html(document).render([translation])
    tags, text = list[str](), ""
    for token in html_text.tokenize(found):
        if token.is_text:
            text += token.raw
        else:
            tags.append(token.raw)
    assert sorted(tags) == sorted(token.raw for token in html_text.tokenize(document) if not token.is_text)
    if translation.text:
        words = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").split()
        assert "".join(words) == "".join(translation.target_words)
    opened = list[str]()
    for token in html_text.tokenize(found):
        if token.name in ("b", "i", "u") and not token.close:
            opened.append(token.name)
        elif token.close:
            assert opened.pop() == token.name
    assert not opened


@pytest.mark.parametrize("text", ["a " * 2000, "<b>a</b> " * 120, "<b>" * 240 + "a" + "</b>" * 240])
def test_long_sentences(text: str) -> None:
    words = ["a"] * text.count("a")
    translation = AlignedTranslation(" ".join(words), words, words, diagonal(len(words)))
    assert html_text.parse_html(text).render([translation]) == text.rstrip() + " " * text.endswith(" ")


# ---- files -------------------------------------------------------------------------------------------------


def test_a_file_keeps_its_encoding() -> None:
    """A character that the encoding lacks becomes a reference."""
    data = '<meta charset="ISO-8859-1"><p>caf\u00e9</p>'.encode("latin1")
    document = html_text.parse_file(data, "a.html")
    assert document.lines == ["café"]
    assert document.write([AlignedTranslation("\u0153uf \u0416")]).endswith(b"<p>\x9cuf &#1046;</p>")
    assert (
        html_text.parse_file(b"\xef\xbb\xbf<p>a", "a").write([AlignedTranslation("\u0416")])[-2:]
        == b"\xd0\x96"
    )


@pytest.mark.parametrize(
    "data, message",
    [
        (b"<p>\n\xff", "a.html:2: byte 0xff"),
        (b"<meta charset=utf-16>", "a.html:1: declares the encoding utf-16"),
        (b"\n" + b"<div>" * 2000, "a.html:2: more than 1000"),
    ],
)
def test_files_that_cannot_be_read(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        html_text.parse_file(data, "a.html")


def test_a_sentence_without_alignment_beside_one_that_has_it() -> None:
    """Its tags keep their relative position, and do not collapse."""
    items = [
        InlineItem("A dog runs. A ", "A dog runs. A "),
        InlineItem("<b>", opens=True),
        InlineItem("cat", "cat"),
        InlineItem("</b>", closes=True),
        InlineItem(" sleeps.", " sleeps."),
    ]
    aligned = AlignedTranslation(
        "Un chien court.", "a dog runs .".split(), "un chien court .".split(), [(i, i) for i in range(4)]
    )
    line = SplitLine(["A dog runs.", "A cat sleeps."], [" "])
    joined = join_line(line, [aligned, AlignedTranslation("Un chat dort.", (), "un chat dort .".split())], "")
    tagged = TaggedText.from_items(items)
    assert tagged is not None and re.search(r"<b>\w+</b>", tagged.render(joined))


def test_a_word_that_looks_like_an_escape_is_found_as_it_is() -> None:
    assert locate_words(["a", "&amp;", "dog"], "a &amp; dog") == [(0, 1), (2, 7), (8, 11)]
    assert locate_words(["a", "&amp;", "dog"], "a & dog") == [(0, 1), (2, 3), (4, 7)]
