"""smt-rescore: options that contradict each other, and lists that do not fit, are refused in one line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.smt_bridge.nbest.lists import LIST, SOURCE


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    (tmp_path / "n").write_text(LIST)
    (tmp_path / "s").write_text(SOURCE)
    (tmp_path / "w").write_text("LM0= 0.5\nWordPenalty0= 0.2\nRNN0= 1\n")
    return tmp_path


REFUSALS = {
    "nothing to write": (["-o", ""], "nothing to write"),
    "missing weight": (["-w", "w2", "-o", "o"], "no weight for feature WordPenalty0"),
    "weight of nothing": (["-w", "w3", "-o", "o"], "a weight for XX0, which no list has"),
    "wrong decoder weights": (
        ["--decoder-weights", "w4", "-o", "o"],
        "these are not the weights that its decoder used",
    ),
    "name taken": (["-f", "lm:LM0=x", "-o", "o"], "the name LM0 is taken"),
    "by phrase": (["--by-phrase", "-o", "o"], "--by-phrase needs a --feature"),
    "text too short": (["-s", "short", "-o", "o"], "entries for sentence 2, but short has 2 lines"),
    "text too long": (["-s", "long", "-o", "o"], "no entry for sentence 3 (line 4 of long)"),
    "mbr without best": (["--mbr", "bleu", "-o", "o"], "--mbr chooses what --best writes"),
    "scale without mbr": (["--mbr-scale", "2", "-o", "o"], "go with --mbr bleu or --mbr chrf"),
    "two scales": (["--mbr", "bleu", "--mbr-scale", "1", "2", "--best", "o"], "2 values of --mbr-scale, but"),
    "scale and tuning": (
        ["--mbr", "bleu", "--mbr-scale", "2", "--mbr-tune", "s", "--best", "o"],
        "--mbr-tune chooses the scale",
    ),
    "scale output": (
        ["--mbr", "bleu", "--mbr-scale-output", "x", "--best", "o"],
        "give --mbr-tune REF",
    ),
    "short references": (
        ["--mbr", "bleu", "--mbr-tune", "short", "--best", "o"],
        "short: 2 lines, but s has 3",
    ),
    "output is input": (["-o", "n"], "is read too"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case: str, lists: Path, command: Command, refused: Callable[..., str]) -> None:
    for name, text in (
        ("w2", "LM0= 1\n"),
        ("w3", "LM0= 1\nWordPenalty0= 1\nXX0= 1\n"),
        ("w4", "LM0= 1\nWordPenalty0= 1\n"),
    ):
        (lists / name).write_text(text)
    (lists / "short").write_text("a\n\n")
    (lists / "long").write_text(SOURCE + "a\n")
    words, message = REFUSALS[case]
    given = [] if "-s" in words else ["-s", "s"]
    done = command("smt-rescore", "n", "-q", *given, *(words if words != ["-o", ""] else []), cwd=lists)
    assert message in refused(done)
    assert not (lists / "o").exists()
