"""What earlier versions made loads and gives what it gave: see tests/golden/README.md."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.formats import nbest

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
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


@pytest.mark.parametrize("version", ["0.1.0", "0.5.0"])
def test_an_old_translator_translates_as_it_did(version: str, command: Command) -> None:
    done = command(
        "nmt-translate",
        GOLDEN / version / "translator",
        "-q",
        "--matmul",
        "mkl",
        "-b",
        10,
        "-i",
        GOLDEN / "source.en",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (GOLDEN / version / "translator.fr").read_text(encoding="utf-8")


def test_an_old_translator_scores_as_it_did(command: Command) -> None:
    line = ["-q", "--matmul", "mkl", "-b", 5, "--n-best", 3, "-i", GOLDEN / "source.en"]
    done = command("nmt-translate", GOLDEN / "0.1.0" / "translator", *line)
    check_list(done.stdout, GOLDEN / "0.1.0" / "translator.nbest", 1e-3)


def test_an_old_language_model_scores_as_it_did(command: Command) -> None:
    text = GOLDEN / "0.1.0" / "translator.fr"
    done = command("nmt-score", GOLDEN / "0.5.0" / "lm", "-q", "--matmul", "mkl", "-i", text)
    assert done.returncode == 0, done.stderr
    expected = (GOLDEN / "0.5.0" / "lm.scores").read_text(encoding="utf-8")
    assert list(map(float, done.stdout.split())) == pytest.approx(
        list(map(float, expected.split())), abs=1e-4
    )


@pytest.mark.ci
def test_an_old_phrase_based_system_translates_as_it_did(command: Command, tmp_path: Path) -> None:
    """Its n-best list too, derivation by derivation."""
    text, found = GOLDEN / "0.5.0" / "tokenized.en", tmp_path / "list"
    line = ["-q", "-i", text, "--n-best-list", found, "--n-best", 3, "--distinct"]
    done = command("smt-decode", GOLDEN / "0.5.0" / "phrase-based", *line)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (GOLDEN / "0.5.0" / "phrase-based.fr").read_text(encoding="utf-8")
    check_list(found.read_text(encoding="utf-8"), GOLDEN / "0.5.0" / "phrase-based.nbest", 1e-4)
