"""A mapped n-gram model beside its ARPA file: size, time to open, single lines a CPU second, sum of log p.

python -m tests.benchmarks.mapped_lm LM.arpa.gz TEXT
"""

import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from nmt.io import files, mapped
from nmt.ngram import count_models, trie, trie_build
from nmt.ngram.count_models import CountModel

LINES = 20_000
ROUNDS = 5


def seconds(function: Callable[[], object]) -> float:
    """CPU seconds of a call, the best of several."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def report(name: str, model: CountModel, lines: list[list[str]]) -> None:
    """Print the speed and the sum of a model."""
    for line in lines[:2500]:  # compiled after 2,000 calls
        model.scores([line])
    total = sum(float(model.scores([line])[0].sum()) for line in lines)
    rate = len(lines) / seconds(lambda: [model.scores([line]) for line in lines])
    print(f"{name}\t{rate:,.0f} lines a CPU s\tlog p {total:.4f}")


def main(arpa: str, text: str) -> None:
    lines = [files.split_words(line) for line in islice(files.read_lines(text), LINES)]
    model = count_models.read_arpa(arpa)
    report("ARPA", model, lines)
    count = sum(len(level.keys) for level in model.levels)
    for bits in (0, 8):
        with tempfile.TemporaryDirectory() as folder:
            mapped.write_record(Path(folder), trie_build.compile_model(model, bits), [arpa])
            trie.load_trie(folder)
            size = sum(path.stat().st_size for path in Path(folder).iterdir())
            opened = seconds(lambda folder=folder: trie.load_trie(folder))  # type: ignore[misc]
            name = f"{bits} bits" if bits else "exact"
            print(f"{name}\t{size:,} bytes, {size / count:.2f} an n-gram\topened in {opened:.4f} CPU s")
            report(name, count_models.load_count_model(folder), lines)
            trie.stamp_path(folder).unlink(missing_ok=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
