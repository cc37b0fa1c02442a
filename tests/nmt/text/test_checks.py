"""What each check finds, and where; sound lines have none of it."""

import logging

import pytest

from nmt.text.checks import (
    CHECKS,
    CUT_CONTRACTION,
    NOWHERE,
    Punctuation,
    find_cut_contraction,
    warn_of_tokenized,
)

# ---- test checks -------------------------------------------------------------------------------------------

SOUND = ["A man sleeps.", "L'été, il fait 30 °C à Nîmes !", "a < b & c > d", "Ça coûte 5 €", "犬が。"]


@pytest.mark.parametrize("line", SOUND)
def test_sound_lines(line: str) -> None:
    positions = {name: check.position(line) for name, check in CHECKS.items()}
    assert {name: position for name, position in positions.items() if position != NOWHERE} == {}


@pytest.mark.parametrize(
    ("name", "line", "place"),
    [
        ("empty", " ", 0),
        ("control", "a\x07b", 1),
        ("control", "a\u0085b", 1),
        ("control", "two\u2028lines", 3),
        ("tab", "one\ttwo", 3),
        ("lost", "caf\ufffd", 3),
        ("twice encoded", "il est cafÃ©", 10),
        ("twice encoded", "donâ€™t", 3),
        ("not composed", "cafe\u0301 noir", 3),
        ("not composed", "cafe\u0301", 3),
        ("escaped", "Ann &apos;s", 4),
        ("escaped", "a &amp; b", 2),
        ("html", "a <b>fat</b> cat", 2),
        ("html", 'x <a href="y">', 2),
        ("html", "a&nbsp;b", 1),
        ("html", "&nbsp; <b>x</b>", 0),
        ("html", "<b>x</b> &nbsp;", 0),
        ("html", "a &amp; b &eacute;", 10),
        ("subwords", "lo@@ wer", 2),
        ("subwords", "the lo@@", 6),
        ("subwords", "▁the ▁lower", 0),
        ("long", "a " * 251, 0),
        ("without letters", "12 : 30", 0),
        ("sentences", "A man sleeps.  A dog runs. It barks.", 15),
        ("sentences", "犬が走る。猫が寝る。", 5),
    ],
)
def test_what_is_found(name: str, line: str, place: int) -> None:
    assert CHECKS[name].position(line) == place
    others = [other for other, check in CHECKS.items() if other != name and check.position(line) != NOWHERE]
    assert others == (["escaped"] if "&amp; b &eacute" in line else [])


# ---- test tokenized ----------------------------------------------------------------------------------------
# What gives tokenized text away.


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("You can 't go.", "n 't"),
        ("I ca n't go.", "a n't"),
        ("It 's here.", "t 's"),
        ("They ’ll go", "y ’ll"),
        ("L' homme dort.", "L' homme"),
        ("parce qu' il dort", "qu' il"),
    ],
)
def test_words_that_a_tokenizer_has_cut(line: str, part: str) -> None:
    match = CUT_CONTRACTION.search(line)
    assert match and match[0] == part
    assert (quick := find_cut_contraction(f"{line} {line}")) and quick.span() == match.span()
    assert find_cut_contraction(line.upper())


@pytest.mark.parametrize(
    "line",
    [
        "You can't go.",
        "rock 'n' roll",
        "the boys ' toys",
        "He said 'so' to me.",
        "L'homme, qu'il dort.",
        "a 's' b",
    ],
)
def test_raw_text_is_not_cut(line: str) -> None:
    assert not CUT_CONTRACTION.search(line)


def test_a_text_is_tokenized_where_nearly_all_of_its_punctuation_stands_alone() -> None:
    for raw, expected in ((0, True), (1, True), (3, False)):
        punctuation = Punctuation()
        for line in ["The man , here ."] * 9 + ["The man here."] * raw:
            punctuation.add(line)
        assert punctuation.is_tokenized() is expected
    assert not Punctuation().is_tokenized()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["Fine.", "You can &apos;t go.", "It 's late."], 'text.en:2: "n \'t"'),
        (["Done ."] * 10, "text.en: tokenized already"),
        (["Done ."] * 9, ""),
        (["Done."] * 20, ""),
    ],
)
def test_one_warning_at_most(lines: list[str], message: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert list(warn_of_tokenized(lines, "text.en")) == lines
    assert len(caplog.records) == bool(message) and message in caplog.text
