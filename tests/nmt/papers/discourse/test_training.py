"""Encoders trained on plain text, resumed, and translators that start from them."""

from pathlib import Path

import pytest
import torch

from nmt.errors import CheckpointError, ConfigError
from nmt.runs import checkpoint, weights
from nmt.training import build, config_file
from nmt.training.train import run_training, train
from tests.nmt.papers.discourse.texts import planted

MODEL = {"embedding": 6, "hidden": 8, "maxout": 6, "encoder": "birnn", "attention": 5}


def write(path: Path, lines: list[list[str]]) -> str:
    path.write_text("".join(" ".join(words) + "\n" for words in lines), encoding="utf-8")
    return str(path)


def settings(folder: Path, run: str, steps: int, **more: object) -> dict[str, object]:
    text = {"tokenize": False, "normalize": False}
    return {
        "run": str(folder / run),
        "threads": 1,
        "matmul": "mkl",
        "data": {
            "train_text": write(folder / "train.txt", planted(12)),
            "dev_text": write(folder / "dev.txt", planted(12, seed=5)),
            "target": text,
        },
        "model": {"type": "discourse", **MODEL, **more},
        "training": {"max_steps": steps, "batch_size": 8, "validate_every": 3, "log_every": 3},
    }


def learn(folder: Path, run: str, steps: int, **more: object) -> Path:
    run_training(config_file.from_mapping(settings(folder, run, steps, **more)))
    return folder / run


@pytest.mark.ci
def test_resumed_is_as_never_stopped(tmp_path: Path) -> None:
    """The same weights; dev.tsv has the accuracies."""
    whole = learn(tmp_path, "whole", 9, dropout=0.1)
    learn(tmp_path, "cut", 4, dropout=0.1)
    cut = learn(tmp_path, "cut", 9, dropout=0.1)
    first, second = (weights.load_tensors(run / "step-9.pt") for run in (whole, cut))
    assert first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)
    header, *rows = (whole / "dev.tsv").read_text(encoding="utf-8").splitlines()
    signature = rows[-1].split("\t")[header.split("\t").index("signature")]
    assert signature.startswith("accuracy order 0.") and " next 0." in signature and " conj 0." in signature


@pytest.mark.ci
def test_a_translator_starts_from_it(tmp_path: Path) -> None:
    """The encoder's weights, word vectors by word; the decoder starts afresh."""
    parent = build.load_parent(learn(tmp_path, "parent", 3))
    pairs = [["w1", "n2", "new"], ["n0", "w3", "w1"]] * 4
    child = train({
        "run": str(tmp_path / "child"),
        "init_from": str(tmp_path / "parent"),
        "data": {
            "train_source": write(tmp_path / "a.en", pairs), "train_target": write(tmp_path / "b.fr", pairs),
            "source": {"tokenize": False}, "target": {"tokenize": False},
        },
        "model": {"type": "rnn", **MODEL},
        "training": {"max_steps": 1, "learning_rate": 0.0, "optimizer": "adam"},
    }).members[0]  # fmt: skip
    theirs, ours = parent.model.state_dict(), child.model.state_dict()
    same = [name for name in ours if name.startswith("encoder.") and "embedding" not in name]
    assert len(same) == 6 and all(torch.equal(ours[name], theirs[name]) for name in same)
    vectors = "encoder.embedding.weight"
    for word in ("w1", "w3", "n0", "n2"):
        row, other = child.source_words.ids[word], parent.source_words.ids[word]
        assert torch.equal(ours[vectors][row], theirs[vectors][other])


def test_what_it_is_not(tmp_path: Path) -> None:
    """It starts from nothing itself, and the Python interface of translators refuses it."""
    config = settings(tmp_path, "run", 1)
    with pytest.raises(ConfigError, match="an encoder alone, which does not translate"):
        train(config)
    (tmp_path / "parent").mkdir()
    (tmp_path / "parent" / "version").write_text("nmt-run 2\n")
    with pytest.raises(ConfigError, match="init_from: for translators only"):
        run_training(config_file.from_mapping({**config, "init_from": str(tmp_path / "parent")}))


@pytest.mark.ci
def test_it_does_not_translate(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="start a translator from it by init_from"):
        checkpoint.load(learn(tmp_path, "run", 1))
