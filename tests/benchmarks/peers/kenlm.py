"""n-gram models beside KenLM: reading an ARPA file, scoring single lines, Kneser-Ney estimation.

    .venv/bin/python -m tests.benchmarks.peers.kenlm TEXT [--rounds N]

TEXT: tokenized text, one sentence a line; 5-grams are estimated from it, and its first 20,000 lines scored.
Estimation needs lmplz on PATH (github.com/kpu/kenlm; PyPI has no such program). KenLM computes in float32:
the sums of log p must agree to 1e-5 of their size.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import compare, environment, ours, program

LINES = 20_000
# Either prints the CPU seconds of reading, lines a CPU second one by one, and the sum of natural log p.
COMMON = """
import json, math, sys, time
lines = [line.rstrip("\\n") for line in open(sys.argv[2], encoding="utf-8", newline="\\n")][:{count}]
start = time.process_time()
{load}
read = time.process_time()
for line in lines[:2500]:  # ours is compiled after 2,000 calls
    score(line)
warm = time.process_time()
total = sum(map(score, lines))
end = time.process_time()
print(json.dumps([read - start, len(lines) / (end - warm), total]))
"""
THEIRS = """
import kenlm
config = kenlm.Config()
config.show_progress = False
model = kenlm.Model(sys.argv[1], config)
score = lambda line: model.score(line) * math.log(10)
"""
OURS = """
from nmt.io import files
from nmt.ngram import count_models
model = count_models.read_arpa(sys.argv[1])
score = lambda line: sum(model.scores([files.split_words(line)])[0].tolist())
"""


def measure(python: str | Path, load: str, model: Path, text: Path) -> list[float]:
    """CPU seconds of reading, lines a CPU second, sum of log p."""
    code = COMMON.format(count=LINES, load=load.strip())
    command = [str(python), "-c", code, str(model), str(text)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    values: list[float] = json.loads(printed.strip().split("\n")[-1])
    return values


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args(argv)
    text = args.text.resolve()
    peer = environment("kenlm", "kenlm")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        estimate = {f"nmt-ngram, {text.name}": ours(f"nmt-ngram -q --order 5 -i {text} -o lm")}
        if lmplz := program("lmplz", "github.com/kpu/kenlm, built with Boost"):
            theirs = [lmplz, "-o", "5", "-S", "60%", "--text", str(text), "--arpa", "lm.lmplz"]
            estimate = {"lmplz": theirs, **estimate}
        compare("Kneser-Ney 5-grams, estimated and written", estimate, folder, args.rounds)
        rows = {"KenLM": (peer, THEIRS), "ours": (Path(sys.executable), OURS)}
        runs: dict[str, list[list[float]]] = {name: [] for name in rows}
        for _ in range(args.rounds):
            for name, (python, load) in rows.items():
                runs[name].append(measure(python, load, folder / "lm", text))
    best = {name: (min(r[0] for r in row), max(r[1] for r in row), row[0][2]) for name, row in runs.items()}
    (seconds, speed, total), (our_seconds, our_speed, our_total) = best["KenLM"], best["ours"]
    print(f"\nreading, CPU s: KenLM {seconds:.2f}, ours {our_seconds:.2f}: {our_seconds / seconds:.2f}x")
    print(f"lines a CPU s, one by one: KenLM {speed:,.0f}, ours {our_speed:,.0f}: {our_speed / speed:.2f}x")
    print(f"sum of log p: KenLM {total:.3f}, ours {our_total:.3f}")
    if abs(our_total - total) > 1e-5 * abs(total):
        raise SystemExit("the scores differ by more than float32 does")


if __name__ == "__main__":
    main()
