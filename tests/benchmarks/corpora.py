"""Peak memory of the start of a training, by the number of its pairs: two corpora, one with all filters,
over- and undersampled. First from text, then from the binarized corpus.

corpora.py [PAIRS ...]    default 200000 2000000: minutes, and 1 GB of a temporary folder
"""

import json
import random
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np

from nmt.data.batches import BatchStream
from nmt.data.corpus import CorpusConfig, epoch_counts
from nmt.data.binarized import Corpus

# Without tokenization, which keeps nothing: it would be most of the time.
START = """
import json, resource, sys, threading, time
import nmt
asked, peak = [], 0
def stop():
    asked.append(1)
    return len(asked) == 20
def watch():
    global peak
    while True:
        lines = dict(line.split(":") for line in open("/proc/self/status"))
        peak = max(peak, int(lines["RssAnon"].split()[0]))
        time.sleep(0.02)
threading.Thread(target=watch, daemon=True).start()
nmt.train(json.loads(sys.argv[1]), stop=stop)
print(peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
SIDE = {"language": "en", "tokenize": False, "normalize": False}


def write(folder: Path, pairs: int) -> None:
    """Text of 8,000 words, some of them rare; a fifth of the pairs are in the second corpus."""
    rng = random.Random(1)
    words = [f"w{n}" for n in range(8000)]
    chances = [1 / (n + 10) for n in range(8000)]
    stream = iter(rng.choices(words, chances, k=1_000_000))
    for name, count in (("one", pairs - pairs // 5), ("two", pairs // 5)):
        with open(folder / f"{name}.en", "w") as source, open(folder / f"{name}.fr", "w") as target:
            for number in range(count):
                line = [next(stream, "w0") for _ in range(4 + number % 9)]
                if number % 90_000 == 0:
                    stream = iter(rng.choices(words, chances, k=1_000_000))
                source.write(" ".join([*line, f"w{number % 8000}"]) + "\n")
                target.write(" ".join(reversed(line)) + "\n")


def of_stream(pairs: int, temperature: float) -> int:
    """Peak memory of the first batches of an epoch, without the corpus, in bytes."""
    offsets, ids = np.arange(pairs + 1, dtype=np.int64), np.zeros(pairs, np.uint16)
    parts = (pairs - pairs // 5, pairs // 5)
    corpus = Corpus(ids, offsets, ids, offsets, parts=parts)
    counts = epoch_counts(parts, [CorpusConfig()] * 2, temperature)
    tracemalloc.start()
    rows = BatchStream(corpus, 64, 20, 1, counts=counts).rows(0)
    for _ in range(100):
        next(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> None:
    for temperature in (1, 3):
        grown = (of_stream(2_000_000, temperature) - of_stream(200_000, temperature)) / 1_800_000
        print(f"batches at temperature {temperature}: {grown:.1f} bytes more a pair", flush=True)
    sizes = [int(size) for size in sys.argv[1:]] or [200_000, 2_000_000]
    found: dict[str, list[tuple[int, int]]] = {"from text": [], "from ids": []}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), size)
            filters = {"drop_duplicates": True, "drop_copies": True, "max_ratio": 9}
            corpora = [
                {"source": f"{folder}/{name}.en", "target": f"{folder}/{name}.fr", "filters": chosen}
                for name, chosen in (("one", filters), ("two", {}))
            ]
            config = {
                "run": f"{folder}/run",
                "threads": 1,
                "matmul": "mkl",
                "data": {"corpora": corpora, "temperature": 3, "source": SIDE, "target": SIDE},
                "model": {"embedding": 8, "hidden": 8, "maxout": 8},
                "training": {"max_steps": 10**6, "tensorboard": False},
            }
            for name, rows in found.items():
                done = subprocess.run(
                    [sys.executable, "-c", START, json.dumps(config)],
                    check=True,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                anonymous, peak = map(int, done.stdout.split())
                rows.append((anonymous, peak))
                print(
                    f"{size:,} pairs {name}: at most {anonymous / 1024:.1f} MiB of anonymous memory, "
                    f"{peak / 1024:.0f} MiB with the pages of mapped files",
                    flush=True,
                )
    for name, rows in found.items():
        more = max(1, sizes[-1] - sizes[0])
        grown, mapped = (1024 * (last - first) / more for first, last in zip(rows[0], rows[-1], strict=True))
        print(f"{name}: {grown:.1f} bytes more a pair, {mapped:.1f} with mapped pages")


if __name__ == "__main__":
    main()
