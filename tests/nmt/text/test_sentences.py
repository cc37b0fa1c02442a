"""Sentences of lines: 40 written lines of each of five languages, in which ¦ stands before the gap between
two sentences, and the bytes of any line."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmt.text import sentences
from nmt.text.sentences import split

FOLDER = Path(__file__).parent / "sentences"
LANGUAGES = ("cs", "de", "en", "fr", "ja")
CASES = [
    (language, line)
    for language in LANGUAGES
    for line in (FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines()
]
PIECES = st.sampled_from(
    [
        *".!?…。！？ \t\u00a0\u2028()「」<>\"'„“«»3aA",
        "Dr",
        "Muž spí",
        "男",
        "<b>",
        "</b>",
        '<a title="A. B">',
        "II",
        "J.",
    ]
)
LINES = st.text() | st.lists(PIECES, max_size=30).map("".join)


def test_there_are_40_lines_of_each_language() -> None:
    assert [sum(one == language for one, _ in CASES) for language in LANGUAGES] == [40] * 5


@pytest.mark.parametrize(("language", "marked"), CASES)
def test_sentences_of_written_lines(language: str, marked: str) -> None:
    line = split(marked.replace("¦", ""), language)
    first, *rest = marked.split("¦")
    assert line.sentences == [first, *(part.lstrip() for part in rest)]
    assert line.gaps == [part[: len(part) - len(part.lstrip())] for part in rest]


@settings(deadline=None, max_examples=80)
@given(LINES, st.sampled_from([*LANGUAGES, "", "zh-TW", "hi", "cz", "xx"]))
@example("A man sleeps.\u2028\t A dog runs. ", "en")
def test_a_line_is_its_sentences_and_what_stands_between_them(text: str, language: str) -> None:
    line = split(text, language)
    assert line.join(line.sentences) == text
    assert len(line.gaps) == len(line.sentences) - 1
    assert all(not gap.strip() for gap in line.gaps)
    assert all(any(map(str.isalpha, one)) for one in line.sentences) or len(line.sentences) == 1


@settings(deadline=None, max_examples=50)
@given(LINES, st.sampled_from(LANGUAGES))
def test_a_sentence_has_no_sentences(text: str, language: str) -> None:
    for sentence in split(text, language).sentences[:-1]:
        assert not split(sentence, language).gaps


def test_a_tag_is_not_cut_and_hides_no_end() -> None:
    line = split('See <a title="A man. He sleeps.">this</a>.</p> <b>Then</b> go.', "en")
    assert line.sentences == ['See <a title="A man. He sleeps.">this</a>.</p>', "<b>Then</b> go."]


def test_where_nothing_stands_between_two_sentences_the_target_gets_its_blank() -> None:
    lines, translations = (
        ["男が寝ている。犬が走る。", "", "猫"],
        ["A man sleeps.", "A dog runs.", "", "A cat"],
    )
    english, chinese = (sentences.split_text(lines, "ja", target) for target in ("en", "zh"))
    assert english.sentences == ["男が寝ている。", "犬が走る。", "", "猫"]
    assert english.numbers == [0, 0, 1, 2]
    assert english.join(translations) == ["A man sleeps. A dog runs.", "", "A cat"]
    assert chinese.join(translations) == ["A man sleeps.A dog runs.", "", "A cat"]


def test_every_sentence_gets_the_tag_of_its_line() -> None:
    def tagged(line: str) -> tuple[str, str]:
        return ("<2fr>", line[5:]) if line.startswith("<2fr>") else ("", line)

    text = sentences.split_text(["<2fr> Hi there. A dog runs.", "<2fr> A dog", "A dog"], "en", "fr", tagged)
    assert text.sentences == ["<2fr> Hi there.", "<2fr> A dog runs.", "<2fr> A dog", "A dog"]
    assert text.join(["Bonjour.", "Un chien court.", "Un chien", "Un chien"])[0] == "Bonjour. Un chien court."


@pytest.mark.parametrize("language", ["ru", "uk", "el"])
def test_scripts_with_capitals(language: str) -> None:
    assert split("Мужчина спит. Собака бежит.", language).sentences == ["Мужчина спит.", "Собака бежит."]


def test_without_a_language_the_rules_of_all_count() -> None:
    for line in ("Am 5. November regnete es.", "Bydlí v ul. Dlouhá.", "Voir av. Foch", "Das ist... Wasser."):
        assert not split(line).gaps
    assert split("A man sleeps. A dog runs.").gaps == [" "]


def test_scripts_without_capitals() -> None:
    assert split("وصل الرجل. نام الكلب؟ نعم.", "ar").gaps == [" ", " "]
    assert split("आदमी सोता है। कुत्ता दौड़ता है।", "hi").gaps == [" "]
    assert split("남자가 잔다. 개가 달린다.", "ko").gaps == [" "]


@pytest.mark.parametrize("part", ['! A" ', "・。「", ". <a", "ab. A(", "。」", "</a", "A. "])
def test_work_grows_with_the_line(part: str) -> None:
    """Where a rule read the whole line for each mark, these took from minutes to hours."""
    line = split(part * 40_000, "en")
    assert line.join(line.sentences) == part * 40_000
