"""Phrase scoring through tries against pair by pair, on the real Multi30k table: NMT_DATA=... python
tests/benchmarks/phrase_scores.py

The model of chapter 4: embedding 100, 1,000 units, maxout 500, rank 100, 15,000 words a side (the corpus has
fewer: padded).
CPU seconds of one thread, both back ends, every ratio within one run and one back end. `--workers`: 1 against
2 processes, wall. `--memory`: peak memory on a sorted table ten times as long.
"""

from timing import interleave  # first: it sets the thread policy

import argparse
import gzip
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import torch

from nmt.io import files
from nmt.formats import phrase_table
from nmt.compute import device
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.scoring import pair_scores, word_scores

from smt_bridge.tables.filter import Occurring, read_texts
from smt_bridge.tables.score import cut_chunks

WORDS = 15000
CHUNKS = 3  # from all over the table
NAIVE = 250  # pairs that are scored one by one

Pair = tuple[list[int], list[int]]


def encode(phrase: bytes, ids: dict[bytes, int]) -> list[int]:
    return [ids.setdefault(word, 3 + len(ids)) for word in phrase.split()]


def pieces(table: Path, wanted: Occurring | None) -> list[list[Pair]]:
    """Chunks of ids, evenly spread."""
    ids: list[dict[bytes, int]] = [{}, {}]
    pairs = (pair for pair in phrase_table.read(table) if wanted is None or pair.source in wanted)
    found = [
        [(encode(pair.source, ids[0]), encode(pair.target, ids[1])) for pair in piece]
        for piece in cut_chunks(pairs)
    ]
    step = max(1, len(found) // CHUNKS)
    return found[step // 2 :: step][:CHUNKS]


def by_trie(model: RNNTranslator, chunk: list[Pair]) -> list[float]:
    sources: dict[tuple[int, ...], int] = {}
    source_of = [sources.setdefault(tuple(source), len(sources)) for source, _ in chunk]
    return pair_scores(model, list(sources), [target for _, target in chunk], source_of).tolist()  # type: ignore[no-any-return]


def compare(title: str, chunks: list[list[Pair]], model: RNNTranslator, goal: str) -> None:
    everything = [pair for chunk in chunks for pair in chunk]
    sample = random.Random(1).sample(everything, NAIVE)
    print(
        f"\n{title}: {len(everything):,} pairs, {len({tuple(source) for source, _ in everything}):,} "
        "sources "
        f"  (goal: {goal})"
    )
    for back_end in device.BACK_ENDS:
        device.use_back_end(back_end)
        seconds = interleave(
            {
                "pair by pair": lambda: [word_scores(model, [pair]) for pair in sample],
                "batches of 128 pairs": lambda: word_scores(model, sample * 2),
                "tries": lambda: [by_trie(model, chunk) for chunk in chunks],
            },
            3,
        )
        counts = {"pair by pair": NAIVE, "batches of 128 pairs": 2 * NAIVE, "tries": len(everything)}
        rates = {name: counts[name] / value for name, value in seconds.items()}
        for name, rate in rates.items():
            print(
                f"  {back_end:<7}{name:<22} {rate:8,.0f} pairs a CPU second   "
                f"{rate / rates['pair by pair']:5.1f}x"
            )
    exact = {tuple(map(tuple, pair)): sum(word_scores(model, [pair])[0]) for pair in sample}
    found = {
        tuple(map(tuple, pair)): score
        for chunk in chunks
        for pair, score in zip(chunk, by_trie(model, chunk), strict=True)
    }
    print(
        f"  largest difference in log p on {len(exact)} pairs: "
        f"{max(abs(found[pair] - score) for pair, score in exact.items()):.2e}"
    )


def speed(data: Path) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = RNNTranslator(
        RNNConfig(embedding=100, hidden=1000, maxout=500, output_rank=100, init="glorot", bias=True),
        WORDS,
        WORDS,
    ).eval()
    # A fresh model is all but uniform, which would hide errors: as far from it as a trained one.
    with torch.no_grad():
        model.decoder.output.words.normal_(0, 0.5)
        for table in (model.encoder.embedding, model.decoder.embedding):
            assert isinstance(table, torch.nn.Embedding)
            table.weight.normal_(0, 1)
    print(device.processor_name())
    wanted = Occurring(
        read_texts([str(data / "corpus" / f"{name}.tok.en") for name in ("val", "test_2016_flickr")])
    )
    compare("whole table", pieces(data / "phrase-table.gz", None), model, "11x")
    compare(
        "filtered table", pieces(data / "phrase-table.gz", wanted), model, "20x; 35x where oneDNN is 1.5x MKL"
    )


def run(run_directory: str, table: Path, workers: int) -> tuple[float, int]:
    """Wall seconds and peak memory in bytes of the whole command and its processes (the largest of them)."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            str(Path(sys.executable).parent / "smt-score-table"),
            str(table),
            "-q",
            "-f",
            f"translation={run_directory}",
        ]
        clock = time.monotonic()
        subprocess.run([*command, "--workers", str(workers), "-o", f"{folder}/out"], check=True)
        return time.monotonic() - clock, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def workers(data: Path, run_directory: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table"
        table.write_bytes(
            b"".join(
                line + b"\n"
                for line in islice(files.read_byte_lines(data / "phrase-table.gz"), 300000, 400000)
            )
        )
        for turn in range(3):
            seconds = [run(run_directory, table, number)[0] for number in (1, 2)]
            print(
                f"100,000 pairs, turn {turn + 1}: 1 worker {seconds[0]:.1f} s, 2 workers {seconds[1]:.1f} s "
                f"wall: {seconds[0] / seconds[1]:.2f}x"
            )


def memory(data: Path, run_directory: str) -> None:
    """The real table, then `q0 ` ... `q9 ` before each source: sorted, and ten times as long."""
    with tempfile.TemporaryDirectory() as folder:
        _, small = run(run_directory, data / "phrase-table.gz", 1)
        long = Path(folder) / "long.gz"
        with gzip.open(long, "wb", 1) as out:
            for number in range(10):
                for line in files.read_byte_lines(data / "phrase-table.gz"):
                    head, bars, tail = line.partition(b" ||| ")
                    fields = tail.split(b" ||| ")
                    out.write(b"q%d " % number + head + bars + b" ||| ".join(fields[:2]) + b"\n")
        print(f"{small / 2**20:,.0f} MB on the real table", flush=True)
        seconds, large = run(run_directory, long, 1)
        print(
            f"{large / 2**20:,.0f} MB on a table of 8,391,680 lines, {seconds:,.0f} s (peak of either, so "
            "never below the first)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workers", metavar="RUN_DIR")
    parser.add_argument("--memory", metavar="RUN_DIR", help="of 32 units, or it takes hours")
    args = parser.parse_args()
    data = Path(os.environ["NMT_DATA"]) / "moses-multi30k"
    if args.workers:
        workers(data, args.workers)
    elif args.memory:
        memory(data, args.memory)
    else:
        speed(data)


if __name__ == "__main__":
    main()
