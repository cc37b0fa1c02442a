from pathlib import Path

import pytest

from nmt import nbest
from nmt.errors import DataError
from nmt.nbest import Hypothesis


def test_read_of_write_is_the_same() -> None:
    hypotheses = [
        Hypothesis(0, ["un", "ho|mme"], {"NMT0": [-1.25]}, -0.5),
        Hypothesis(1, [], {"A0": [1.0, -2.5], "B": []}, 0.0, ["0-1=0-1", "0-0"]),
    ]
    assert [nbest.parse(nbest.write(hypothesis), "x:1") for hypothesis in hypotheses] == hypotheses


def test_moses_form() -> None:
    assert nbest.write(Hypothesis(3, ["a", "b"], {"NMT0": [-1.77]}, -0.59)) == "3 ||| a b ||| NMT0= -1.77 ||| -0.59"


@pytest.mark.parametrize("line", ["0 ||| a ||| b", "x ||| a ||| N= 1 ||| 0", "0 ||| a ||| 1 2 ||| 0", "0 ||| a ||| N= one ||| 0"])
def test_malformed_lines_are_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "n").write_text(f"0 ||| a ||| N= 1 ||| 0\n{line}\n")
    with pytest.raises(DataError, match="n:2: "):
        list(nbest.read(tmp_path / "n"))


def test_real_moses_lists(nmt_data: Path) -> None:
    """read then write keeps every line of a real list, but for Moses' second blank and trailing blanks."""
    path = nmt_data / "moses-multi30k" / "out" / "nbest60.nb4.gz"
    from nmt import files

    lines = [" ".join(line.split()) for line in files.read_lines(path)]
    assert len(lines) > 500
    assert [" ".join(nbest.write(hypothesis).split()) for hypothesis in nbest.read(path)] == lines
