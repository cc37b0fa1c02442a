"""What the comparisons of training speed share: texts that are cut the same way for both sides, our
configurations, and the measurement.

Every side trains on the same pairs, 64 sentences an update, with one thread. CPU seconds of a short training
are taken from those of a long one, so that starts and ends do not count; the difference is a whole number of
epochs, so that its target units are known.
"""

import argparse
import os
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt.io import files
from nmt.text.subwords import bpe
from . import cost, ours

BATCH, MERGES, DEV = 64, 4000, 16  # sentences an update; joint merges; pairs of the development set
SIDES = ("en", "fr")
MODELS = ("rnn", "transformer")
CONFIG = f"""
run: RUN
data:
  train_source: train.en
  train_target: train.fr
  dev_source: dev.en
  dev_target: dev.fr
  max_length: 200
  source: {{tokenize: false, normalize: false, language: en}}
  target: {{tokenize: false, normalize: false, language: fr}}
  shared_vocabulary: SHARED
MODEL
training: {{optimizer: adam, learning_rate: 0.0005, clip: 1.0, label_smoothing: 0.1, cost: word,
  batch_size: {BATCH}, validate_every: 0, max_epochs: 0, patience: 0, keep: 1}}
"""
OURS = {
    "rnn": """
model: {encoder: birnn, embedding: 256, hidden: 512, encoder_hidden: 256, attention: 512, maxout: 256,
  dropout: 0.3, bias: true}
""",
    "transformer": """
model: {type: transformer, encoder_layers: 4, decoder_layers: 4, embedding: 128, feed_forward: 256, heads: 4,
  norm: pre, tied: all, dropout: 0.3, attention_dropout: 0.1, feed_forward_dropout: 0.1}
""",
}

Commands = Callable[[Path, str, int], Sequence[str | Path]]  # folder, model, updates -> command of a training


@dataclass
class Texts:
    """The texts of a comparison, in a folder: train.en, train.fr, dev.en, dev.fr."""

    folder: Path
    target_units: int  # of the training text, with the ends of sentences


def prepare(folder: Path, model: str, pairs: int) -> Texts:
    """Write the first pairs of Multi30k: words for an RNN, joint BPE for a Transformer."""
    data = Path(os.environ["NMT_DATA"]).absolute() / "moses-multi30k/corpus"
    rows = {side: list(islice(files.read_lines(data / f"train.tok.{side}"), pairs + DEV)) for side in SIDES}
    if model == "transformer":
        counts = Counter(
            word for lines in rows.values() for line in lines for word in files.split_words(line)
        )
        codes = bpe.BPE(bpe.learn(counts, MERGES))
        rows = {
            side: [" ".join(codes.apply(files.split_words(line))) for line in lines]
            for side, lines in rows.items()
        }
    for side, lines in rows.items():
        files.write_text(folder / f"train.{side}", lines[:pairs])
        files.write_text(folder / f"dev.{side}", lines[pairs:])
    return Texts(folder, sum(len(files.split_words(line)) + 1 for line in rows["fr"][:pairs]))


def vocabulary(folder: Path, *sides: str) -> Counter[str]:
    """The words of training texts with their counts, the most frequent first."""
    counts = Counter(
        word for side in sides for line in files.read_lines(folder / f"train.{side}") for word in line.split()
    )
    return Counter(dict(counts.most_common()))


def our_training(folder: Path, model: str, updates: int) -> list[str]:
    """The command of a training of ours."""
    text = CONFIG.replace("RUN", f"run-{updates}").replace("MODEL", OURS[model])
    config = folder / f"ours-{updates}.yaml"
    config.write_text(text.replace("SHARED", str(model == "transformer").lower()), encoding="utf-8")
    return ours(f"nmt-train {config} -q --overwrite --threads 1 training.max_steps={updates}")


def compare(name: str, theirs: Commands, description: str) -> None:
    """Measure a peer and this toolkit in turn, and print target units a CPU second and the ratio."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--pairs", type=int, default=6400, help="a multiple of 64")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    args = parser.parse_args()
    for model in args.models:
        with TemporaryDirectory() as temporary:
            texts = prepare(Path(temporary), model, args.pairs)
            updates = args.pairs // BATCH
            units = (args.epochs - 1) * texts.target_units
            rates: dict[str, list[float]] = {name: [], "nmt-train": []}
            for _ in range(args.rounds):
                for side, command in ((name, theirs), ("nmt-train", our_training)):
                    short, long = (
                        cost(command(texts.folder, model, count), texts.folder).cpu
                        for count in (updates, args.epochs * updates)
                    )
                    rates[side].append(units / (long - short))
            peer, own = (statistics.median(values) for values in rates.values())
            print(f"\n{model}, {units:,} target units   (medians of {args.rounds} in turn)")
            print(f"  {name:<12} {peer:8,.0f} target units a CPU second")
            print(
                f"  {'nmt-train':<12} {own:8,.0f} target units a CPU second   {own / peer:.2f}x", flush=True
            )
