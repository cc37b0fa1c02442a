"""Pruning of phrase tables: CPU seconds and memory of counting phrase pairs in a generated parallel text.

    .venv/bin/python -m tests.benchmarks.pruning [--pairs N] [--rows N]

The words follow Zipf's law, 22 a line on average; nine of ten target words are those of their source words.
Rows are spans of one to seven words of random lines, the same on both sides: frequent words have many rows.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from nmt.formats.phrase_table import PhrasePair
from smt_bridge.tables.pruning import TablePairs
from smt_bridge.tables.cooccurrence import Cooccurrences, significances
from smt_bridge.tables.filter import BLOCK

TYPES, LINE = 200_000, 22


def write_texts(folder: Path, pairs: int, rows: int, seed: int = 1) -> Iterator[PhrasePair]:
    """Write the texts; yields spans of random lines."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, TYPES + 1)
    limits = np.cumsum(shares / shares.sum())
    names = [[f"{letter}{number}" for number in range(TYPES + 1)] for letter in "st"]
    left = rows
    with (
        open(folder / "s", "w", encoding="utf-8") as source,
        open(folder / "t", "w", encoding="utf-8") as target,
    ):
        for first in range(0, pairs, 1000):
            number = min(1000, pairs - first)
            ends = np.cumsum(rng.integers(4, 2 * LINE - 3, number))
            words = np.searchsorted(limits, rng.random(ends[-1]))
            noise = np.searchsorted(limits, rng.random(ends[-1]))
            others = np.where(rng.random(ends[-1]) < 0.9, words, noise)
            sides = [[of[word] for word in side] for of, side in zip(names, (words, others), strict=True)]
            for file, side in zip((source, target), sides, strict=True):
                file.writelines(
                    " ".join(side[start:end]) + "\n" for start, end in zip([0, *ends[:-1]], ends, strict=True)
                )
            sampled = min(left, -(-rows * number // pairs))
            left -= sampled
            for at, length in zip(
                rng.integers(0, ends[-1] - 7, sampled), rng.integers(1, 8, sampled), strict=True
            ):
                span_source, span_target = (" ".join(side[at : at + length]).encode() for side in sides)
                yield PhrasePair(span_source, span_target, b"1 1 0.5 1", b"||| ||| ||| ||| 1 1 1", 0)


def peak() -> str:
    return f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200_000, help="sentence pairs")
    parser.add_argument("--rows", type=int, default=500_000, help="rows of the table")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        rows = {(pair.source, pair.target): pair for pair in write_texts(Path(folder), args.pairs, args.rows)}
        table = [rows[key] for key in sorted(rows)]
        del rows
        print(f"{args.pairs:,} sentence pairs, {len(table):,} rows, {peak()}")
        warm = TablePairs()
        warm.add(table[:10], [1] * 10)
        warm.keep(1e-7)  # compiles
        start = time.process_time()
        counts = Cooccurrences(f"{folder}/s", f"{folder}/t")
        print(f"suffix arrays: {time.process_time() - start:.1f} CPU s, {peak()}")
    significances(counts.count(table[:10]), counts.pairs)  # compiles
    start = time.process_time()
    once = 0
    for at in range(0, len(table), BLOCK):
        values = significances(counts.count(table[at : at + BLOCK]), counts.pairs)
        once += int((values < np.log(counts.pairs) + 0.001).sum())
    seconds = time.process_time() - start
    print(
        f"counts, significance: {len(table) / seconds:,.0f} rows a CPU second, {peak()}; a+e drops {once:,}"
    )
    start = time.process_time()
    store = TablePairs()
    store.add(table, [1] * len(table))
    kept = store.keep(1e-7)
    seconds = time.process_time() - start
    print(f"entropy: {len(table) / seconds:,.0f} rows a CPU second, {peak()}; drops {int((~kept).sum()):,}")


if __name__ == "__main__":
    main()
