"""Transformers by the commands: trained, resumed, averaged, searched and scored like any other model."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.formats import nbest
from nmt.runs import averaging
from nmt.runs.run import Run
from nmt.search.config import BeamConfig
from nmt.training import config_file as configuration
from nmt.training.train import run_training
from tests.commands.runs import equal_runs
from tests.conftest import Command

CONFIG = """
threads: 1
matmul: mkl
data:
  source: {tokenize: false, normalize: false}
  target: {tokenize: false, normalize: false}
  shared_vocabulary: true
model: {type: transformer, embedding: 16, feed_forward: 24, heads: 2, encoder_layers: 1, decoder_layers: 2,
  norm: pre, tied: all}
training: {optimizer: adam, beta2: 0.98, learning_rate: 0.01, warmup: 4, schedule: inverse_sqrt, cost: word,
  label_smoothing: 0.1, batch_size: 16, max_steps: 12, validate_every: 4, save_every: 7, keep: 3, dev_beam: 2,
  bleu_tokenizer: none, tensorboard: false}
"""
WORDS = "a b c d e f g h"


def trained(folder: Path, name: str, stop: Callable[[], bool] = lambda: False) -> Path:
    """A run over sentences whose translations are their words in reverse."""
    if not (folder / "train.s").exists():
        words = WORDS.split()
        lines = [[words[(i * k + i * i) % 8] for k in range(1 + i % 7)] for i in range(120)]
        for part, rows in (("train", lines), ("dev", lines[:9])):
            for side, step in (("s", 1), ("t", -1)):
                text = "".join(f"{' '.join(row[::step])}\n" for row in rows)
                (folder / f"{part}.{side}").write_text(text, encoding="utf-8")
        (folder / "tf.yaml").write_text(CONFIG, encoding="utf-8")
    parts = itertools.product(("train", "dev"), ("source", "target"))
    files = [f"data.{part}_{side}={folder}/{part}.{side[0]}" for part, side in parts]
    config = configuration.load(str(folder / "tf.yaml"), [f"run={folder / name}", *files])
    run_training(config, stop=stop)
    return folder / name


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("transformer"), "run")


@pytest.mark.ci
def test_resumed_is_bit_equal(run: Path) -> None:
    """Stopped after 7 updates, inside an epoch, and started again: dropout, Adam and schedule go on."""
    calls = iter(range(100))
    stopped = trained(run.parent, "stopped", lambda: next(calls) == 6)
    assert (stopped / "train.tsv").exists()
    trained(run.parent, "stopped")
    equal_runs(run, stopped)


@pytest.mark.ci
def test_lists_scores_and_averages(run: Path, tmp_path: Path, command: Command) -> None:
    """The log p of an n-best list is that of nmt-score; the mean of checkpoints is a model; maps and
    alignments are of every word."""
    text = tmp_path / "text"
    text.write_text("a b c d\ne f\ng\n", encoding="utf-8")
    points = tmp_path / "points"
    found = command("nmt-translate", run, "--n-best", 3, "-i", text, "--alignments", points, "-q")
    assert found.returncode == 0, found.stderr
    (tmp_path / "list").write_text(found.stdout, encoding="utf-8")
    entries = list(nbest.read(tmp_path / "list"))
    sources = text.read_text(encoding="utf-8").split("\n")
    (tmp_path / "s").write_text("".join(f"{sources[one.sentence]}\n" for one in entries), encoding="utf-8")
    (tmp_path / "t").write_text("".join(f"{' '.join(one.words)}\n" for one in entries), encoding="utf-8")
    scored = command("nmt-score", run, "-s", tmp_path / "s", "-t", tmp_path / "t", "-q").stdout.split()
    for one, score in zip(entries, scored, strict=True):
        assert float(score) == pytest.approx(one.features["NMT0"][0], rel=1e-4)
    lines = points.read_text(encoding="utf-8").split("\n")[:-1]
    assert [len(line.split()) for line in lines] == [len(one.words) for one in entries]
    averaging.write(run, tmp_path / "mean", None, last=3)
    assert len(Run.load(str(tmp_path / "mean")).translate(["a b"], BeamConfig(2))) == 1


@pytest.mark.ci
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_reduced_precision(run: Path, precision: str, command: Command) -> None:
    files = ["-s", run.parent / "dev.s", "-t", run.parent / "dev.t", "-q"]
    exact, reduced = (
        command("nmt-score", run, *files, *more).stdout.split() for more in ([], ["--precision", precision])
    )
    assert exact != reduced and len(exact) == 9
    assert list(map(float, reduced)) == pytest.approx(list(map(float, exact)), rel=0.02, abs=0.1)
