"""Sentences of lines: 40 written lines of each of five languages, in which ¦ stands before the gap between
two sentences, and the bytes of any line."""

import random
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.text import sentences
from nmt.text.sentences import LineLimit, line_parts, raw_pieces, split_line

# ---- test sentences ----------------------------------------------------------------------------------------

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
        "Dr", "Muž spí", "男", "<b>", "</b>", '<a title="A. B">', "II", "J.",
    ]
)  # fmt: skip
LINES = st.text() | st.lists(PIECES, max_size=30).map("".join)


def test_there_are_40_lines_of_each_language() -> None:
    assert [sum(one == language for one, _ in CASES) for language in LANGUAGES] == [40] * 5


@pytest.mark.parametrize(("language", "marked"), CASES)
def test_sentences_of_written_lines(language: str, marked: str) -> None:
    line = split_line(marked.replace("¦", ""), language)
    first, *rest = marked.split("¦")
    assert line.sentences == [first, *(part.lstrip() for part in rest)]
    assert line.gaps == [part[: len(part) - len(part.lstrip())] for part in rest]


@settings(deadline=None, max_examples=80)
@given(LINES, st.sampled_from([*LANGUAGES, "", "zh-TW", "hi", "cz", "xx"]))
@example("A man sleeps.\u2028\t A dog runs. ", "en")
@pytest.mark.ci
def test_a_line_is_its_sentences_and_what_stands_between_them(text: str, language: str) -> None:
    line = split_line(text, language)
    assert line.join(line.sentences) == text
    assert len(line.gaps) == len(line.sentences) - 1
    assert all(not gap.strip() for gap in line.gaps)
    assert all(any(map(str.isalpha, one)) for one in line.sentences) or len(line.sentences) == 1


@settings(deadline=None, max_examples=50)
@given(LINES, st.sampled_from(LANGUAGES))
def test_a_sentence_has_no_sentences(text: str, language: str) -> None:
    for sentence in split_line(text, language).sentences[:-1]:
        assert not split_line(sentence, language).gaps


def test_a_tag_is_not_cut_and_hides_no_end() -> None:
    line = split_line('See <a title="A man. He sleeps.">this</a>.</p> <b>Then</b> go.', "en")
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
    assert split_line("Мужчина спит. Собака бежит.", language).sentences == ["Мужчина спит.", "Собака бежит."]


def test_without_a_language_the_rules_of_all_count() -> None:
    for line in ("Am 5. November regnete es.", "Bydlí v ul. Dlouhá.", "Voir av. Foch", "Das ist... Wasser."):
        assert not split_line(line).gaps
    assert split_line("A man sleeps. A dog runs.").gaps == [" "]


def test_scripts_without_capitals() -> None:
    assert split_line("وصل الرجل. نام الكلب؟ نعم.", "ar").gaps == [" ", " "]
    assert split_line("आदमी सोता है। कुत्ता दौड़ता है।", "hi").gaps == [" "]
    assert split_line("남자가 잔다. 개가 달린다.", "ko").gaps == [" "]


@pytest.mark.ci
@pytest.mark.parametrize("part", ['! A" ', "・。「", ". <a", "ab. A(", "。」", "</a", "A. "])
def test_work_grows_with_the_line(part: str) -> None:
    """Where a rule read the whole line for each mark, these took from minutes to hours."""
    line = split_line(part * 40_000, "en")
    assert line.join(line.sentences) == part * 40_000


# ---- test long lines ---------------------------------------------------------------------------------------
# Lines that are too long: parts that lose nothing, cut where a sentence or clause ends.


def test_parts_are_the_line() -> None:
    """Nothing is lost or added, no part is larger than the limit, whatever the words are."""
    rng = random.Random(1)
    for _ in range(300):
        limit = rng.randint(1, 12)
        words = [
            "x" * rng.randint(1, 6) + rng.choice(["", "", "", ".", ",", '."', "!)"])
            for _ in range(rng.randint(1, 60))
        ]
        for size in (lambda word: 1, len):
            found = line_parts(words, limit, size)
            assert "".join(word for part in found for word in part) == "".join(words)
            assert all(part and sum(map(size, part)) <= limit for part in found)
            assert [word for part in found for word in part] == words or (size is len and limit < 8)


def test_cut_at_sentences_then_clauses_then_anywhere() -> None:
    assert line_parts("a b . c d . e f .".split(), 4) == [["a", "b", "."], ["c", "d", "."], ["e", "f", "."]]
    assert line_parts("a b , c d e f g .".split(), 5) == [["a", "b", ","], ["c", "d", "e", "f", "g"], ["."]]
    assert line_parts("a b c d e".split(), 2) == [["a", "b"], ["c", "d"], ["e"]]
    assert (
        line_parts("Mr. A b c d e f g h i! B".split(), 20)[0] == "Mr. A b c d e f g h i!".split()
    )  # no part of one word
    assert line_parts(["short", "y" * 10], 4, len) == [["shor"], ["t"], ["yyyy"], ["yyyy"], ["yy"]]


def test_raw_text_without_blanks() -> None:
    for line in ("一。二三，四", "a b, c 一二。三 d", "。。x", "\ta  b "):
        assert "".join(raw_pieces(line)) == line.rstrip(" \t")
    assert raw_pieces("一二。三四，五") == ["一二。", "三四，", "五"]
    assert raw_pieces("a" + " " * 1_000_000) == ["a"], "in a moment, not in hours"


def test_refused_by_number() -> None:
    LineLimit(3, "in.en").refuse([1, 3, 0], "a score")
    with pytest.raises(
        DataError,
        match=r"^in\.en:12: 1,004 words, more than --max-line-words 3: too long for a score; split the line",
    ):
        LineLimit(3, "in.en", 10).refuse([1, 1004], "a score")
    with pytest.raises(DataError, match=r"^line 1: 4 words"):
        LineLimit(3).refuse([4], "a score")
