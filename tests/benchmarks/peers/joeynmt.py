"""Training beside Joey NMT 2.3.0, an RNN with attention and a Transformer of equal sizes, on Multi30k:

    NMT_DATA=... .venv/bin/python -m tests.benchmarks.peers.joeynmt [--models rnn] [--pairs 6400]

Joey NMT is installed without the packages that training does not use (datasets, pandas, its linters), beside
the torch that our side computes with.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from nmt.io import files
from . import environment
from .trainings import BATCH, compare, vocabulary

PACKAGES = (
    "torch==2.13.0", "numpy", "filelock", "typing_extensions", "sympy", "mpmath", "networkx", "jinja2",
    "MarkupSafe", "fsspec", "joeynmt==2.3.0", "pyyaml", "regex", "sacrebleu", "portalocker", "tabulate",
    "colorama", "lxml", "tensorboard", "setuptools<81", "six", "sentencepiece", "subword-nmt", "mock", "tqdm",
    "matplotlib", "contourpy", "cycler", "fonttools", "kiwisolver", "pyparsing", "python-dateutil", "pillow",
    "plotly", "narwhals", "packaging", "importlib_metadata<8.8", "zipp", "protobuf", "absl-py", "grpcio",
    "markdown", "werkzeug", "tensorboard-data-server", "future", "sacremoses", "joblib", "click",
)  # fmt: skip
PROGRAM = """
import torch
torch.set_num_threads(1)
from joeynmt.__main__ import main
main()
"""
DROPOUT = 0.3
RNN: dict[str, object] = {"type": "recurrent", "rnn_type": "gru", "num_layers": 1, "dropout": DROPOUT}
TRANSFORMER: dict[str, object] = {
    "type": "transformer", "num_layers": 4, "num_heads": 4, "hidden_size": 128, "ff_size": 256,
    "layer_norm": "pre", "dropout": DROPOUT,
}  # fmt: skip
SIZES: dict[str, dict[str, object]] = {
    "rnn": {
        "encoder": {**RNN, "hidden_size": 256, "bidirectional": True, "embeddings": {"embedding_dim": 256}},
        "decoder": {
            **RNN, "hidden_size": 512, "attention": "bahdanau", "embeddings": {"embedding_dim": 256},
            "init_hidden": "bridge", "input_feeding": True, "hidden_dropout": DROPOUT,
        },
    },
    "transformer": {
        "tied_embeddings": True, "tied_softmax": True,
        "encoder": {**TRANSFORMER, "embeddings": {"embedding_dim": 128, "scale": True}},
        "decoder": {**TRANSFORMER, "embeddings": {"embedding_dim": 128, "scale": True}},
    },
}  # fmt: skip


def training(folder: Path, model: str, updates: int) -> Sequence[str | Path]:
    """The command of a training of Joey NMT."""
    python = environment("joeynmt", *PACKAGES, options=["--no-deps"])
    shared = model == "transformer"
    sides = {}
    for name, language in (("src", "en"), ("trg", "fr")):
        counts = vocabulary(folder, *(("en", "fr") if shared else (language,)))
        files.write_text(folder / f"vocab.{language}", ["<unk>", "<pad>", "<s>", "</s>", *counts])
        sides[name] = {"lang": language, "level": "word", "voc_file": str(folder / f"vocab.{language}")}
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    epochs = updates * BATCH // files.count_lines(folder / "train.en")
    config = {
        "name": model, "joeynmt_version": "2.3.0", "model_dir": str(folder / f"joeynmt-{updates}"),
        "use_cuda": False, "random_seed": 1,
        "data": {
            "train": str(folder / "train"), "dev": str(folder / "dev"), "dataset_type": "plain", **sides
        },
        "testing": {"beam_size": 1, "batch_size": BATCH, "max_output_length": 1},
        "training": {
            "overwrite": True, "optimizer": "adam", "learning_rate": 0.0005, "clip_grad_norm": 1.0,
            "scheduling": "exponential", "decrease_factor": 1.0, "normalization": "tokens",
            "label_smoothing": 0.1, "batch_size": BATCH, "batch_type": "sentence",
            "epochs": epochs, "updates": updates, "validation_freq": 1 << 30, "logging_freq": 1 << 10,
            "early_stopping_metric": "loss", "keep_best_ckpts": 1,
        },
        "model": {"initializer": "xavier_uniform", **SIZES[model]},
    }  # fmt: skip
    path = folder / f"joeynmt-{updates}.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    return [python, "train.py", "train", path, "--skip-test"]


if __name__ == "__main__":
    compare("Joey NMT", training, __doc__)
