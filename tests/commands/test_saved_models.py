"""The saved models give what they gave: see tests/models/README.md."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.formats import nbest

MODELS = Path(__file__).resolve().parents[1] / "models"
Command = Callable[..., subprocess.CompletedProcess[str]]


def check_list(printed: str, expected: Path, within: float) -> None:
    """Equal words and derivations, and numbers that differ by no more than `within`."""
    found = [nbest.parse(line, "x") for line in printed.split("\n")[:-1]]
    known = list(nbest.read(expected))
    assert list(map(exact, found)) == list(map(exact, known))
    for a, b in zip(found, known, strict=True):
        assert a.total == pytest.approx(b.total, abs=within)
        for name, values in b.features.items():
            assert a.features[name] == pytest.approx(values, abs=within)


def exact(entry: nbest.Hypothesis) -> tuple[int, list[str], list[str], list[str]]:
    return entry.sentence, entry.words, list(entry.features), entry.rest


def test_the_translator(command: Command) -> None:
    done = command(
        "nmt-translate", MODELS / "translator", "-q", "--matmul", "mkl", "-b", 10, "-i", MODELS / "source.en"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (MODELS / "translator.fr").read_text(encoding="utf-8")


def test_the_language_model(command: Command) -> None:
    text = MODELS / "translator.fr"
    done = command("nmt-score", MODELS / "lm", "-q", "--matmul", "mkl", "-i", text)
    assert done.returncode == 0, done.stderr
    expected = (MODELS / "lm.scores").read_text(encoding="utf-8")
    assert list(map(float, done.stdout.split())) == pytest.approx(
        list(map(float, expected.split())), abs=1e-4
    )


@pytest.mark.ci
def test_the_phrase_based_system(command: Command, tmp_path: Path) -> None:
    """Its n-best list too, derivation by derivation."""
    text, found = MODELS / "tokenized.en", tmp_path / "list"
    line = ["-q", "-i", text, "--n-best-list", found, "--n-best", 3, "--distinct"]
    done = command("smt-decode", MODELS / "phrase-based", *line)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (MODELS / "phrase-based.fr").read_text(encoding="utf-8")
    check_list(found.read_text(encoding="utf-8"), MODELS / "phrase-based.nbest", 1e-4)
