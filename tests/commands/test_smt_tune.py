"""smt-tune and smt-propose as installed."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nmt.formats import phrase_table
from nmt.metrics import corpus_bleu
from tests.conftest import BIN, Command

Refused = Callable[..., str]


TUNE = ["--stack", 10, "--iterations", 3, "--restarts", 2, "--n-best", 30, "-q", "--final-seeds", 2]


@pytest.fixture(scope="module")
def tuned(smt_model: Path, tmp_path_factory: pytest.TempPathFactory, command: Command) -> Path:
    folder = tmp_path_factory.mktemp("tuned")
    done = command(
        "smt-tune",
        smt_model / "model",
        "-s",
        smt_model / "dev.en",
        "-r",
        smt_model / "dev.fr",
        "-o",
        folder / "moses.ini",
        "--work",
        folder / "work",
        *TUNE,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.ci
def test_tuning_keeps_the_best_decoding(tuned: Path, smt_model: Path, command: Command) -> None:
    """BLEU of the tuned weights' decoding is the best of all iterations, the first (untuned) one among them,
    and what the header says."""
    scores = [float(np.load(path)["bleu"]) for path in sorted((tuned / "work").glob("??.npz"))]
    assert len(scores) >= 2 and max(scores) >= scores[0]
    header = (tuned / "moses.ini").read_text().split("\n")[0]
    assert header.startswith(f"# BLEU {100 * max(scores):.2f} on ")
    done = command(
        "smt-decode", tuned / "moses.ini", "-i", smt_model / "dev.en", "--stack", 10
    )  # its paths lead back to the model
    assert done.returncode == 0, done.stderr
    reference = (smt_model / "dev.fr").read_text(encoding="utf-8").rstrip("\n").split("\n")
    found = corpus_bleu(done.stdout.rstrip("\n").split("\n"), [reference], "none").score
    assert abs(found - 100 * max(scores)) < 0.5  # weights are printed with six digits
    assert (tuned / "work" / "seed-2.weights").exists()


@pytest.mark.ci
@pytest.mark.parametrize("trace", ["tune.json", "00.npz", "01.npz"])
def test_killed_tuning_goes_on(
    trace: str, tuned: Path, smt_model: Path, tmp_path: Path, command: Command
) -> None:
    given = [
        "smt-tune",
        smt_model / "model",
        "-s",
        smt_model / "dev.en",
        "-r",
        smt_model / "dev.fr",
        "-o",
        tmp_path / "moses.ini",
        "--work",
        tmp_path / "work",
    ]
    process = subprocess.Popen(
        [str(BIN / "smt-tune"), *map(str, [*given[1:], *TUNE])],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 1200
    while not (tmp_path / "work" / trace).exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = command(*given, *TUNE)
    assert done.returncode == 0, done.stderr
    for name in ("moses.ini", "work/weights", "work/seed-1.weights", "work/seed-2.weights"):
        assert (tmp_path / name).read_bytes() == (tuned / name).read_bytes()


@pytest.mark.ci
def test_tune_on_bad_input(
    smt_model: Path, tuned: Path, tmp_path: Path, command: Command, refused: Refused
) -> None:
    model, given = smt_model / "model", ["-s", smt_model / "dev.en", "-r", smt_model / "dev.fr"]
    (tmp_path / "short").write_text("un\n")
    assert "short: 1 lines, but" in refused(
        command("smt-tune", model, "-s", smt_model / "dev.en", "-r", tmp_path / "short")
    )
    assert "moses.ini: is read too" in refused(command("smt-tune", model, *given, "-o", model / "moses.ini"))
    assert "lm.arpa.gz: is read too" in refused(
        command("smt-tune", model, *given, "-o", model / "lm.arpa.gz")
    )
    line = refused(
        command(
            "smt-tune", model, *given, "-o", tmp_path / "x.ini", "--work", tuned / "work", *TUNE, "--seed", 9
        )
    )
    assert "was started with another seed" in line
    (tmp_path / "wrong").write_text("xx yy zz\n" * 60)
    line = refused(
        command(
            "smt-tune",
            model,
            "-s",
            smt_model / "dev.en",
            "-r",
            tmp_path / "wrong",
            "-o",
            tmp_path / "y.ini",
            *TUNE,
        )
    )
    assert "BLEU is 0 whatever the weights" in line and not (tmp_path / "y.ini").exists()


# ---- proposals ---------------------------------------------------------------------------------------------


@pytest.mark.ci
def test_proposals(smt_model: Path, tiny: Path, tmp_path: Path, command: Command, refused: Refused) -> None:
    """New rows are new, complete, marked and in order; old rows are as they were with one more score; both
    tables hold the same pairs."""
    model = smt_model / "model"
    reordering = model / "reordering-table.wbe-msd-bidirectional-fe.gz"
    given = [
        model / "phrase-table.gz",
        tiny / "run",
        "--lexical",
        model / "lex",
        "-i",
        smt_model / "dev.en",
        "--least",
        0.0001,
    ]
    done = command(
        "smt-propose",
        *given,
        "--reordering",
        reordering,
        "-o",
        tmp_path / "table",
        "--reordering-output",
        tmp_path / "reordering",
    )
    assert done.returncode == 0, done.stderr
    old = {(pair.source, pair.target): pair for pair in phrase_table.checked(model / "phrase-table.gz")}
    new = list(
        phrase_table.checked(tmp_path / "table")
    )  # sorted, with as many scores in each row, or this raises
    rows = list(phrase_table.read(tmp_path / "reordering"))
    assert [(pair.source, pair.target) for pair in new] == [(row.source, row.target) for row in rows]
    proposed = 0
    for pair, row in zip(new, rows, strict=True):
        scores = pair.scores.split()
        assert len(scores) == 5 and len(row.scores.split()) == 6
        before = old.get((pair.source, pair.target))
        if before:
            assert (
                scores == [*before.scores.split(), b"1"]
                and pair.raw.split(b"|||")[3:] == before.raw.split(b"|||")[3:]
            )
        else:
            proposed += 1
            assert scores[4] == b"2.718282" and 0 < float(scores[2]) <= 1
            assert all(0 < float(value) <= 1 for value in row.scores.split())
    assert proposed > 10 and len(new) == len(old) + proposed
    scored = command("smt-propose", tmp_path / "table", *given[1:], "-o", tmp_path / "again")
    assert "propose first, then score further columns" in refused(scored)
    assert "lex2.e2f" in refused(command("smt-propose", *given[:3], model / "lex2", *given[4:]))
