"""Text processing of a hybrid system: raw text to words and back."""

import pytest

from nmt.text import truecase
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.tokenize import escape
from smt_bridge.hybrid.side import TextSide, escape_words

# ---- test side ---------------------------------------------------------------------------------------------


MODEL = truecase.learn([["x", "the", "Man", "."], ["x", "iPhone", "Paris", "URL", "le"]])


def make_side(language: str = "en", case: str = "truecase") -> TextSide:
    return TextSide(SideConfig(language=language, case=case), MODEL)


TEXTS = [
    'He said "yes" (twice); it\'s 50% of $3.50.',
    "It costs 3.5 or 1,000 euros at 10:30 on 1/2/2024.",
    "See https://example.org/a_b?c=d&e=f#g, or write to a.b+c@mail.example.org!",
    "<b>Bold</b> and <a href=\"x y\" class='z'>a link</a>.",
    "AT &amp; T &lt; b &gt; &#65; it's [a | b] * <",
    "",
]


@pytest.mark.parametrize("case", ["keep", "truecase"])
@pytest.mark.parametrize("text", TEXTS)
def test_there_and_back(text: str, case: str) -> None:
    one = make_side(case=case)
    words = one.words(text)
    assert not [word for word in words if set(word) & set(" \t|<>[]'\"") or not word]
    assert one.text(words) == text


@pytest.mark.parametrize("case", ["keep", "truecase"])
@pytest.mark.parametrize("text", TEXTS)
def test_runs_that_protect_text_have_the_same_words(text: str, case: str) -> None:
    pipeline = TextPipeline.of(SideConfig(language="en", case=case, protect=True))
    pipeline.tokenizer.truecaser = MODEL
    assert escape_words(pipeline.words(text)) == make_side(case=case).words(text)
    assert pipeline.text(pipeline.units(text)) == text


@pytest.mark.parametrize(("language", "case"), [("en", "keep"), ("fr", "lower"), ("de", "truecase")])
def test_ordinary_text_is_cut_as_everywhere_else(language: str, case: str) -> None:
    """The words are those of nmt-tokenize and nmt-truecase."""
    pipeline = TextPipeline.of(SideConfig(language=language, case=case))
    pipeline.tokenizer.truecaser = MODEL
    for line in ["The man's house. L'homme & l'eau!", "A 3.5 % «test» of U.S. names, e.g. x."]:
        assert " ".join(make_side(language, case).words(line)) == " ".join(
            escape(word) for word in pipeline.words(line)
        )


def test_tags_do_not_hide_the_start_of_a_sentence() -> None:
    one = make_side()
    assert one.words("<b>The</b> man. <i>The man</i>") == (
        "&lt;b&gt; the &lt;/b&gt; Man . &lt;i&gt; the Man &lt;/i&gt;".split(" ")
    )
    assert one.text("&lt;b&gt; the &lt;/b&gt; man .".split(" ")) == "<b>The</b> man."


@pytest.mark.parametrize("case", ["truecase", "lower"])
def test_what_is_copied_keeps_its_case(case: str) -> None:
    one = TextSide(SideConfig(language="en", case=case), truecase.learn([["x", "HTTP://X.org"]]))
    assert one.words("http://X.org is")[0] == "http://X.org"
    assert one.text(["http://X.org", "is"]) == "http://X.org is"
    assert one.words("<B>x</B>") == ["&lt;B&gt;", "x", "&lt;/B&gt;"]


def test_an_elided_article_before_a_tag() -> None:
    one = make_side("fr", "keep")
    assert one.words("l'<b>homme</b>") == ["l&apos;", "&lt;b&gt;", "homme", "&lt;/b&gt;"]
    assert one.text(one.words("l'<b>homme</b>")) == "l'<b>homme</b>"
    assert (
        make_side("en", "keep").words("l'<b>homme</b>")[2] == "&lt;b&gt;"
    )  # the apostrophe would stick to it


def test_exact_spans_stand_unchanged() -> None:
    one = make_side()
    words = ["iphone", "x", "is", "new", ",", "as", "mr", "."]
    exact = {(0, 2): "iPhone  X (TM)", (6, 7): "ZQAAAA's"}
    assert one.text(words, exact) == "iPhone  X (TM) is new, as ZQAAAA's."


def test_an_empty_exact_span_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the span \(1, 1\) has no words"):
        make_side().text(["a", "b"], {(1, 1): "x"})


def test_a_text_may_contain_placeholders() -> None:
    one = make_side(case="keep")
    text = "ZQAAAA zqq ZQQAAAB <b>ZQAAAB</b> http://zq.org"
    assert one.text(one.words(text)) == text


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "我喜欢<b>你</b>，看http://x.org/a_b或a.b@c.org。"),
        ("ja", "10:30に<i>私</i>はSony 3.5台を買った。"),
        ("th", "ฉัน<b>รัก</b> คุณ <u>มาก</u> http://x.org/a_bคุณ"),
    ],
)
def test_scripts_without_blanks(language: str, text: str) -> None:
    """No blanks are added around protected text; in Thai a blank would be a word."""
    one = make_side(language, "keep")
    assert one.text(one.words(text)) == text
