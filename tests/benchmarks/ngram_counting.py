"""nmt-ngram on more and more text, counted in memory and on disk: CPU seconds, peak memory, the same file.

    python -m tests.benchmarks.ngram_counting TEXT --lines 300000 1000000 3000000 [--memory 0.5] [--only disk]

TEXT: tokenized text, one sentence a line, such as recipes/wmt14/generate.py makes. The first lines of it are
read.
"""

import argparse
import filecmp
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from nmt.io import files


def run(arguments: Sequence[str]) -> tuple[float, float]:
    """Run nmt-ngram; returns CPU seconds and peak memory in MB."""
    process = subprocess.Popen([sys.executable, "-m", "nmt.cli.ngram", "-q", *arguments])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"nmt-ngram {' '.join(arguments)}: failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--lines", type=int, nargs="+", default=[300_000, 1_000_000, 3_000_000])
    parser.add_argument("--memory", default="0.5", help="GB, for counting on disk")
    parser.add_argument("--only", choices=("memory", "disk"), help="default: both, and compare the files")
    args = parser.parse_args(argv)
    print("lines\twords\tcounted\tCPU s\tMB\tn-grams")
    for count in args.lines:
        with tempfile.TemporaryDirectory() as folder:
            text, words = f"{folder}/text", 0
            with open(text, "w", encoding="utf-8") as stream:
                for line in islice(files.read_lines(args.text), count):
                    words += len(files.split_words(line))
                    stream.write(f"{line}\n")
            ways = {"memory": ["--memory", "1000"], "disk": ["--estimator", "own", "--memory", args.memory]}
            for name, more in ways.items():
                if args.only in (None, name):
                    lm = f"{folder}/{name}"
                    seconds, peak = run(["--order", "5", "-i", text, "-o", lm, *more])
                    with open(lm, encoding="utf-8") as stream:
                        grams = sum(int(line.split("=")[1]) for line in islice(stream, 1, 6))
                    print(f"{count:,}\t{words:,}\t{name}\t{seconds:.1f}\t{peak:,.0f}\t{grams:,}", flush=True)
            if args.only is None and not filecmp.cmp(f"{folder}/memory", Path(folder, "disk"), shallow=False):
                raise SystemExit("the models differ")


if __name__ == "__main__":
    main()
