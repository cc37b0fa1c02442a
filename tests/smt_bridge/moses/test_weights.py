"""Weights by name: read from a file of their own or from a moses.ini, written so that they read back."""

from pathlib import Path

import pytest

from nmt.errors import DataError
from smt_bridge.moses import weights
from tests.smt_bridge.moses.systems import INI

WEIGHTS = {"LM0": [0.5], "TM0": [0.2, -0.3, 1e-05], "UnknownWordPenalty0": [1.0]}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """With six digits, which is what Moses prints; written again it has the same bytes."""
    weights.write(tmp_path / "w", {**WEIGHTS, "D": [1 / 3]}, ["BLEU 0.5", "of mine"])
    found = weights.read(tmp_path / "w")
    assert found == {**WEIGHTS, "D": [0.333333]}
    weights.write(tmp_path / "again", found, ["BLEU 0.5", "of mine"])
    assert (tmp_path / "again").read_bytes() == (tmp_path / "w").read_bytes()


def test_those_of_an_ini(tmp_path: Path) -> None:
    """From [weight] to the next section."""
    (tmp_path / "moses.ini").write_text(INI)
    section = INI.partition("[weight]\n")[2].partition("[v]")[0]
    (tmp_path / "w").write_text(f"\n# of the ini\n{section}")
    assert weights.read(tmp_path / "moses.ini") == weights.read(tmp_path / "w")
    assert weights.tuned(weights.read(tmp_path / "w")) == {"WordPenalty0", "TM0", "LR0", "LM0"}
    (tmp_path / "moses.ini").write_text(INI.partition("[weight]")[0])
    with pytest.raises(DataError, match=r"moses.ini: no weights, expected lines like 'LM0= 0.1'"):
        weights.read(tmp_path / "moses.ini")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("LM0 = 1", "w:2: 'LM0 = 1' is not a weight, expected 'Name= value value ...'"),
        ("LM0=1", "is not a weight"),
        ("= 1", "is not a weight"),
        ("A= 1", "w:2: A already has weights above"),
        ("LM0=", "w:2: LM0 has no weight"),
        ("LM0= 1 x", "w:2: a weight of LM0: 'x' is not a number"),
        ("LM0= nan", "w:2: a weight of LM0: 'nan' is not a number"),
    ],
)
def test_what_is_no_weight(line: str, message: str) -> None:
    with pytest.raises(DataError) as error:
        weights.parse([(1, "A= 1"), (2, line)], "w")
    assert message in str(error.value)


def test_what_moses_prints_instead_of_a_weight() -> None:
    assert weights.parse([(1, "UnknownWordPenalty0 UNTUNEABLE"), (2, "A= 1 2")], "w") == {"A": [1.0, 2.0]}
