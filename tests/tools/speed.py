"""Is a checkout slower than another? The same commands by the code of either, in turns; CPU seconds.

    python tests/tools/speed.py BEFORE AFTER [--times 7] [--only PATTERN]

Each round runs the old code, the new code and the old code again, so that the ratio new to old stands beside
that of old to old, which is the noise. One thread; the start of Python is part of it (about 2 s with torch).
"""

import argparse
import os
import re
import shlex
import statistics
import subprocess
import tempfile
from pathlib import Path

from same_bytes import entry_points, run, write_corpus

TRAINING = "embedding=128 model.hidden=256 model.maxout=128 model.init=glorot"
LONG = "training.dev_beam=0 training.metric=cost training.validate_every=10000 training.batch_size=64"
AT = "--matmul mkl --threads 1 -q"
# What is made once, by the old code, before anything is timed.
PREPARED = [
    f"nmt-train translator.yaml run=rnn model.{TRAINING} training.max_steps=40 training.validate_every=20",
    f"nmt-train translator.yaml run=attention model.{TRAINING} model.encoder=birnn model.attention=64 "
    "training.max_steps=40 training.validate_every=20",
    "nmt-train lm.yaml run=cslm lm.type=cslm lm.order=5 lm.embedding=64 lm.layers=[128] "
    "training.max_steps=40 training.validate_every=20",
    "smt-train model --source all.en --target all.fr --order 3 --max-length 7 -q",
    "smt-decode model -q --stack 1 --input few.en --output warm",
]
TIMED = {
    "training, encoder-decoder": f"nmt-train translator.yaml run=new model.{TRAINING} "
    f"training.max_steps=60 {LONG}",
    "training, attention": f"nmt-train translator.yaml run=new model.{TRAINING} "
    "model.encoder=birnn "
    f"model.attention=64 training.max_steps=30 {LONG}",
    "training, CSLM": "nmt-train lm.yaml run=new lm.type=cslm lm.order=5 lm.embedding=64 lm.layers=[128] "
    f"training.max_steps=800 {LONG}",
    "beam, encoder-decoder": f"nmt-translate rnn {AT} --input all.en --output out --beam-size 10",
    "beam, attention": f"nmt-translate attention {AT} --input all.en --output out --beam-size 5",
    "phrase scoring": f"smt-score-table model/phrase-table.gz {AT} --feature translation=rnn --output out.gz",
    "CSLM scoring": f"nmt-score cslm {AT} --input many.fr --output out",
    "decoder, stack 100": "smt-decode model -q --stack 100 --input all.en --output out",
    "decoder, 100-best": "smt-decode model -q --stack 100 --input all.en --output out --n-best-list list "
    "--n-best 100 --distinct",
}


def cpu_seconds(command: str, folder: Path, checkout: Path, commands: dict[str, str]) -> float:
    """Of one command and the processes that it starts."""
    subprocess.run(["rm", "-rf", str(folder / "new")], check=True)
    before = os.times()
    printed = run(command, folder, checkout, commands)
    after = os.times()
    if not printed.startswith("exit status 0"):
        raise SystemExit(f"{command}: {printed}")
    return after.children_user + after.children_system - before.children_user - before.children_system


def prepare(folder: Path, checkout: Path) -> None:
    write_corpus(folder, checkout, 2000)
    for side in ("en", "fr"):
        lines = (folder / f"train.low.{side}").read_text(encoding="utf-8")
        (folder / f"all.{side}").write_text(lines, encoding="utf-8")
        (folder / f"many.{side}").write_text(lines * 4, encoding="utf-8")
        (folder / f"few.{side}").write_text("".join(lines.splitlines(keepends=True)[:5]), encoding="utf-8")
        (folder / f"lower.{side}").write_text(lines, encoding="utf-8")
    for command in PREPARED:
        printed = run(command, folder, checkout, entry_points(checkout))
        if not printed.startswith("exit status 0"):
            raise SystemExit(f"{shlex.join([command])}: {printed}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the speed of two checkouts.")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--only", default="", metavar="PATTERN")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="speed-"))
    before, after = args.before.resolve(), args.after.resolve()
    points = {before: entry_points(before), after: entry_points(after)}
    prepare(folder, before)
    print("work\told s\tnew / old\told / old", flush=True)
    for name, command in TIMED.items():
        if not re.search(args.only, name):
            continue
        rows: list[list[float]] = []
        for turn in range(args.times + 1):
            row = [cpu_seconds(command, folder, which, points[which]) for which in (before, after, before)]
            if turn:  # the first fills caches
                rows.append(row)
        old = statistics.median(row[0] for row in rows)
        new, again = (statistics.median(row[k] / row[0] for row in rows) for k in (1, 2))
        print(f"{name}\t{old:.2f}\t{new:.3f}\t{again:.3f}", flush=True)


if __name__ == "__main__":
    main()
