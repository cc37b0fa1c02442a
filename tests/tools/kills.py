"""Do long commands end bit-equal however often they are killed? Each runs once in peace, then again and again
with SIGKILL to all its processes at random moments, and is started anew until it ends.

    python tests/tools/kills.py [--kills N] [--seed N] [--work DIR] [--only PATTERN]

Exit status 1 when a file differs, or a start fails. See README.md.
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from same_bytes import NOT_COMPARED, write_corpus

BIN = Path(sys.executable).parent
CHECKOUT = Path(__file__).resolve().parents[2]
SIZE = 3000  # sentences of the corpus
COMMANDS = {
    "smt-train": "smt-train --source train.low.en --target train.low.fr --order 3 --max-length 7 OUT",
    "smt-train-add": "smt-train --add peace/smt-train --source dev.low.en --target dev.low.fr OUT",
    "smt-tune": "smt-tune peace/smt-train -s dev.low.en -r dev.low.fr --n-best 50 --iterations 4 --stack 30 "
    "--work OUT/work -o OUT/moses.ini",
    "smt-score-table": "smt-score-table peace/smt-train/phrase-table.gz --feature translation=run "
    "--feature lm=peace/smt-train/lm.arpa.gz --workers 2 -o OUT/table.gz",
    "smt-rescore": "smt-rescore list -s head.en --feature translation=run --workers 2 -o OUT/list",
}
RESUMES_BY_ITSELF = ("smt-train", "smt-train-add", "smt-tune")


@dataclass
class Tally:
    """What came of a command."""

    kills: int = 0
    starts: int = 0
    seconds: float = 0.0  # of the run in peace
    wrong: str = ""


def start(command: str, out: str, folder: Path, resume: bool) -> subprocess.Popen[bytes]:
    """In a process group of its own, so that its workers are killed with it."""
    name, *words = command.replace("OUT", out).split()
    again = ["--resume"] if resume else []
    with open(folder / "messages", "wb") as messages:
        return subprocess.Popen(
            [str(BIN / name), *words, *again, "-q"],
            cwd=folder,
            env={**os.environ, "NMT_CACHE": str(folder / "cache")},
            stderr=messages,
            start_new_session=True,
        )


def peace(name: str, folder: Path) -> float:
    """Run a command once; its seconds."""
    began = time.monotonic()
    status = start(COMMANDS[name], f"peace/{name}", folder, False).wait()
    assert status == 0, (folder / "messages").read_text()
    return time.monotonic() - began


def killed(name: str, folder: Path, kills: int, draw: random.Random) -> Tally:
    """Run it with so many kills in all, as many times as that takes."""
    tally = Tally(seconds=peace(name, folder))
    expected = contents(folder / "peace" / name)
    while tally.kills < kills and not tally.wrong:
        out, resume = folder / "war" / name, False
        shutil.rmtree(out, ignore_errors=True)
        while True:
            process = start(COMMANDS[name], f"war/{name}", folder, resume)
            tally.starts += 1
            try:
                # most kills in the first half of the work, so that a start after a kill is killed too
                wait = draw.uniform(0.2, 0.8 * tally.seconds) if tally.kills < kills else None
                status = process.wait(wait)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                tally.kills += 1
                resume = name not in RESUMES_BY_ITSELF
                continue
            if status:
                tally.wrong = f"status {status}: {(folder / 'messages').read_text().strip()}"
            break
        found = contents(out)
        if not tally.wrong and found != expected:
            differing = [path for path in expected | found if expected.get(path) != found.get(path)]
            tally.wrong = f"differs: {', '.join(sorted(differing))}"
    return tally


def contents(folder: Path) -> dict[str, bytes]:
    """The files that are compared."""
    names = (path for path in folder.rglob("*") if path.is_file())
    return {
        name: path.read_bytes()
        for path in names
        if not NOT_COMPARED.search(name := str(path.relative_to(folder)))
    }


def prepare(folder: Path) -> None:
    """The corpus, a run, and a list of translations of the development text."""
    write_corpus(folder, CHECKOUT, SIZE)
    lines = (folder / "train.en").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "head.en").write_text("".join(lines[:1000]), encoding="utf-8")
    for command in (
        "nmt-train translator.yaml run=run training.max_steps=60 training.validate_every=20",
        "nmt-translate run -i head.en -o list --n-best 10 -b 10",
    ):
        name, *words = command.split()
        subprocess.run([str(BIN / name), *words, "-q"], cwd=folder, check=True)


def main() -> int:
    """All commands, a line each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=10, help="of each command")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help="an empty folder, which stays")
    parser.add_argument("--only", default="", help="commands that match this regular expression")
    args = parser.parse_args()
    folder = (args.work or Path(tempfile.mkdtemp(prefix="kills-"))).resolve()
    (folder / "peace").mkdir(parents=True)
    prepare(folder)
    draw, wrong = random.Random(args.seed), 0
    for name in COMMANDS:
        if not re.search(args.only, name):
            if name == "smt-train":
                peace(name, folder)
            continue
        tally = killed(name, folder, args.kills, draw)
        wrong += bool(tally.wrong)
        print(
            f"{name}\t{tally.seconds:.1f} s\t{tally.kills} kills\t{tally.starts} starts\t"
            f"{tally.wrong or 'bit-equal'}",
            flush=True,
        )
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
