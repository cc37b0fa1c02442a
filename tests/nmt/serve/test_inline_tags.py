"""Where inline tags stand in a translation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.serve import html_text
from nmt.serve.engine import Hypothesis, Translated
from nmt.serve.inline_tags import locate

Points = list[tuple[int, int]]


def placed(document: str, source: str, target: str, alignment: Points, text: str = "") -> str:
    """The translation of a document of one sentence, given its words."""
    best = Hypothesis(text or target, target.split(), 0.0, alignment=alignment)
    return html_text.parse(document).translated([Translated(source.split(), [best])])


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
    assert locate(["l&apos;", "HOMME", "?", "dort"], "L'homme dort") == [(0, 2), (2, 7), (7, 7), (8, 12)]
    assert locate([], "a bc") == [(0, 1), (2, 4)]


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
def sentences(draw: st.DrawFn) -> tuple[str, Translated]:
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
    best = Hypothesis(" ".join(target), target, 0.0, alignment=points)
    return "".join(parts), Translated(words, [best])


@settings(deadline=None, max_examples=200)
@given(sentences())
def test_every_tag_stands_as_often_as_it_did_and_no_word_is_lost(case: tuple[str, Translated]) -> None:
    document, translation = case
    found = html_text.parse(document).translated([translation])
    tags, text = list[str](), ""
    for token in html_text.tokenize(found):
        if token.is_text:
            text += token.raw
        else:
            tags.append(token.raw)
    assert sorted(tags) == sorted(token.raw for token in html_text.tokenize(document) if not token.is_text)
    if translation.hypotheses[0].text:
        words = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").split()
        assert "".join(words) == "".join(translation.hypotheses[0].words)
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
    best = Hypothesis(" ".join(words), words, 0.0, alignment=diagonal(len(words)))
    assert html_text.parse(text).translated(
        [Translated(words, [best])]
    ) == text.rstrip() + " " * text.endswith(" ")
