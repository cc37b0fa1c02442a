"""What each check finds, and where; sound lines have none of it."""

import pytest

from nmt.text.inspection.checks import CHECKS, NOWHERE

SOUND = ["A man sleeps.", "L'été, il fait 30 °C à Nîmes !", "a < b & c > d", "Ça coûte 5 €", "犬が。"]


@pytest.mark.parametrize("line", SOUND)
def test_sound_lines(line: str) -> None:
    assert {name: check.where(line) for name, check in CHECKS.items() if check.where(line) != NOWHERE} == {}


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
    assert CHECKS[name].where(line) == place
    others = [other for other, check in CHECKS.items() if other != name and check.where(line) != NOWHERE]
    assert others == (["escaped"] if "&amp; b &eacute" in line else [])
