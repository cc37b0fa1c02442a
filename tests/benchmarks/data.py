"""A corpus of 10 million pairs, binarized: anonymous memory over importing torch, and seconds to the first
batch.

data.py [PAIRS]      writes about 1 GB for 10 million pairs into a temporary folder
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from nmt.data.binarized import binarize
from nmt.text.vocab import Vocab

READ = """
import time, sys
def anonymous():
    lines = open("/proc/self/smaps_rollup")
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Anonymous"))
import torch
from pathlib import Path
before, start = anonymous(), time.time()
from nmt.data.batches import BatchStream
from nmt.data.binarized import open_corpus
stream = BatchStream(open_corpus(Path(sys.argv[1])), 64, 20, 1)
batches = stream.batches(0)
next(batches)
first = time.time() - start
for _ in range(2000):
    next(batches)
print(f"{len(stream.corpus):,} pairs: first batch after {first:.2f} s, "
    f"{anonymous() - before:.0f} MB of anonymous memory after 2,000 batches,",
      f"{2000 * 64 / (time.time() - start - first):,.0f} pairs/s")
"""


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    words = Vocab({f"w{n}": 1 for n in range(30000)}, 30000)
    names = [f"w{n}" for n in range(30000)]

    def pairs() -> Iterator[tuple[list[str], list[str]]]:
        for n in range(count):
            start = n * 7919 % 29900
            yield names[start : start + 5 + n % 40], names[start + 1 : start + 4 + n % 37]

    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        binarize(pairs(), words, words, Path(folder), 50, "benchmark")
        print(f"binarized in {time.time() - start:.0f} s")
        subprocess.run([sys.executable, "-c", READ, folder], check=True)


if __name__ == "__main__":
    main()
