"""`smt-train --add` beside training on all pairs again: CPU seconds of the steps, word alignment of the added
pairs, and BLEU with the same weights:

    python -m tests.benchmarks.added_pairs SOURCE TARGET VAL_SOURCE VAL_TARGET WEIGHTS_INI OUT_DIR [--added N]

The last pairs of the text are added to a model of the others. The share of equal links is that of the
symmetrized alignment. BLEU is that of the tokens in the texts. CPU seconds are of this process, in which all
three are trained; a small training before compiles.
"""

import argparse
import time
from itertools import islice
from pathlib import Path

import numpy as np

from nmt.formats import pharaoh
from nmt.io import files
from smt_bridge.config import TrainConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.moses import ini as moses_ini
from smt_bridge.train_system import ALIGNMENT, INI, add_config, train
from smt_bridge.tuning import loop
from smt_bridge.tuning.bleu import bleu


def cut(path: str, folder: Path, pairs: int) -> tuple[str, str]:
    """The first `pairs` lines of a text and the others, as files."""
    lines = list(files.read_lines(path))
    names = [str(folder / f"{Path(path).name}.{part}") for part in ("old", "new")]
    for name, part in zip(names, (lines[:pairs], lines[pairs:]), strict=True):
        files.write_text(name, part)
    return names[0], names[1]


def timed(folder: Path, config: TrainConfig) -> str:
    steps = list[float]()
    begin = time.process_time()

    def report() -> None:
        steps.append(time.process_time() - begin - sum(steps))

    train(folder, config, on_step=report)
    return f"{sum(steps):.1f} CPU s: " + ", ".join(f"{step:.1f}" for step in steps)


def compile_all(folder: Path, source: str, target: str) -> None:
    """Train a model of a few pairs, and add them once more."""
    small = str(folder / "small.source"), str(folder / "small.target")
    for path, text in zip(small, (source, target), strict=True):
        files.write_text(path, islice(files.read_lines(text), 300))
    train(folder / "small", TrainConfig(*small))
    train(folder / "small-added", add_config(str(folder / "small"), *small))


def score(folder: Path, weights: str, source: str, reference: str) -> float:
    """BLEU with the weights of another moses.ini, in percent."""
    ini = moses_ini.set_weights(moses_ini.read(str(folder / INI)), moses_ini.read_weights(weights))
    moses_ini.write(folder / "benchmark.ini", ini)
    decoder = Decoder.load(str(folder / "benchmark.ini"))
    references = loop.make_references([list(files.read_lines(reference))])
    found = [decoder.translate_line(line).text for line in files.read_lines(source)]
    rows = [one.statistics(text) for one, text in zip(references, found, strict=True)]
    return 100 * float(bleu(np.array(rows, np.float64).sum(0)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("source", "target", "val_source", "val_target", "weights"):
        parser.add_argument(name)
    parser.add_argument("out", type=Path)
    parser.add_argument("--added", type=int, default=3000)
    args = parser.parse_args()
    args.out.mkdir(parents=True)
    pairs = files.number_of_lines(args.source)
    parts = [cut(path, args.out, pairs - args.added) for path in (args.source, args.target)]
    old, new = zip(*parts, strict=True)
    compile_all(args.out, *old)
    print("trained\t", timed(args.out / "old", TrainConfig(*old)), flush=True)
    print("added\t", timed(args.out / "added", add_config(str(args.out / "old"), *new)), flush=True)
    print("whole\t", timed(args.out / "whole", TrainConfig(args.source, args.target)), flush=True)
    added, whole = (list(pharaoh.read(args.out / name / ALIGNMENT)) for name in ("added", "whole"))
    for what, first, end in (
        ("old pairs", 0, pairs - args.added),
        ("added pairs", pairs - args.added, pairs),
    ):
        ours, theirs = added[first:end], whole[first:end]
        both = sum(len(a & b) for a, b in zip(ours, theirs, strict=True))
        sizes = sum(map(len, ours)), sum(map(len, theirs))
        print(
            f"{what}\tprecision {both / sizes[0]:.4f}, recall {both / sizes[1]:.4f}, "
            f"F {2 * both / sum(sizes):.4f}"
        )
    for name in ("old", "added", "whole"):
        print(
            f"{name}\tBLEU {score(args.out / name, args.weights, args.val_source, args.val_target):.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
