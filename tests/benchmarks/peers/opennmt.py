"""Training beside OpenNMT-py 3.5.1, an RNN with attention and a Transformer of equal sizes, on Multi30k:

    NMT_DATA=... .venv/bin/python -m tests.benchmarks.peers.opennmt [--models rnn] [--pairs 6400]

OpenNMT-py asks for an older torch, which is newer here so that both sides compute with the same; three
libraries of transforms that are not used are left out.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from nmt.io import files
from . import environment
from .trainings import BATCH, compare, vocabulary

PACKAGES = (
    "torch==2.13.0", "numpy", "filelock", "typing_extensions", "sympy", "mpmath", "networkx", "jinja2",
    "MarkupSafe", "fsspec", "OpenNMT-py==3.5.1", "configargparse", "pyyaml", "regex", "rapidfuzz",
    "sacrebleu", "portalocker", "tabulate", "colorama", "lxml", "tensorboard", "setuptools<81", "six",
    "flask", "waitress", "werkzeug", "ctranslate2", "pyonmttok", "protobuf", "absl-py", "grpcio", "markdown",
    "packaging", "pillow", "tensorboard-data-server", "blinker", "click", "itsdangerous",
)  # fmt: skip
PROGRAM = """
import sys, types
for name in ("spacy", "fasttext", "ahocorasick"):
    sys.modules[name] = types.ModuleType(name)
import torch
from onmt.bin.train import main
torch.set_num_threads(1)
main()
"""
SIZES = {
    "rnn": {
        "encoder_type": "brnn", "decoder_type": "rnn", "rnn_type": "GRU", "word_vec_size": 256,
        "hidden_size": 512, "layers": 1, "global_attention": "mlp", "dropout": [0.3],
    },
    "transformer": {
        "encoder_type": "transformer", "decoder_type": "transformer", "position_encoding": True,
        "word_vec_size": 128, "hidden_size": 128, "transformer_ff": 256, "heads": 4, "layers": 4,
        "dropout": [0.3], "attention_dropout": [0.1], "share_vocab": True, "share_embeddings": True,
        "share_decoder_embeddings": True,
    },
}  # fmt: skip


def training(folder: Path, model: str, updates: int) -> Sequence[str | Path]:
    """The command of a training of OpenNMT-py."""
    python = environment("opennmt", *PACKAGES, options=["--no-deps"])
    shared = model == "transformer"
    for side in ("en", "fr"):
        counts = vocabulary(folder, *(("en", "fr") if shared else (side,)))
        files.write_text(folder / f"vocab.{side}", (f"{word}\t{count}" for word, count in counts.items()))
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    config = {
        "data": {"corpus_1": {"path_src": "train.en", "path_tgt": "train.fr", "transforms": []}},
        "src_vocab": "vocab.en", "tgt_vocab": "vocab.fr", "src_vocab_size": 50000, "tgt_vocab_size": 50000,
        "save_model": f"opennmt-{updates}", "overwrite": True, "save_data": "opennmt-data",
        "batch_type": "sents", "batch_size": BATCH, "normalization": "tokens", "num_workers": 0,
        "bucket_size": files.count_lines(folder / "train.en"), "train_steps": updates, "valid_steps": 1 << 30,
        "save_checkpoint_steps": 1 << 30, "report_every": 1000, "optim": "adam", "learning_rate": 0.0005,
        "max_grad_norm": 1.0, "label_smoothing": 0.1, "seed": 1, **SIZES[model],
    }  # fmt: skip
    path = folder / f"opennmt-{updates}.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    return [python, "train.py", "-config", path]


if __name__ == "__main__":
    compare("OpenNMT-py", training, __doc__)
