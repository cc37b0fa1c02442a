"""Do two checkouts write the same? Runs the same commands by the code of either and compares their files.

    python tests/tools/same_bytes.py BEFORE AFTER [--work DIR] [--only PATTERN]

Exit status 1 when something differs. See README.md.
"""

import argparse
import configparser
import contextlib
import gzip
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

SIZE = 300  # sentences of the corpus
COMMANDS = Path(__file__).with_name("commands.txt")  # in order: later ones read what earlier ones write
INPUTS = Path(__file__).with_name("inputs")  # files that they read, beside the corpus
FORKS = Path(__file__).with_name("forks.py")
# Times, logs, copies of the settings, and checksums of files that hold some of these.
NOT_COMPARED = re.compile(
    r"(^|/)(version|(?<!started/)config\.yaml|train\.json|tune\.json|.*\.scores\.json|inputs\.json|manifest\.json|matmul\.tsv|train\.tsv|dev\.tsv|job\.json"
    r"|state\.json|.*\.log|\.lock|times\.json|build/logs/.*|system/(report\.html|system\.json)|data/.*|cache/.*|events\.out.*|.*\.pdf|.*\.png|.*\.svg)$|/__pycache__/"
)

# In a line of commands.txt: what follows is asked of the server that comes before.
ASK = "ASK"
HANG = 300.0  # seconds after which a server will not start any more


def write_corpus(folder: Path, checkout: Path, size: int = SIZE) -> None:
    """By the grammar of one checkout, for both."""
    code = (
        "from nmt.sample_corpus.grammar import Writer, text\n"
        f"w = Writer(11)\nfor i in range({size}):\n"
        "    p = w.sentence(5)\n    print(text(p.source), text(p.target), sep='\\t')\n"
    )
    rows = subprocess.run(
        [sys.executable, "-c", code],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for column, side in enumerate(("en", "fr")):
        lines = [row.split("\t")[column] + "\n" for row in rows]
        parts = {"train": lines[40:], "dev": lines[:20], "test": lines[20:40], "two": lines[20:25]}
        for name, part in parts.items():
            (folder / f"{name}.{side}").write_text("".join(part), encoding="utf-8")
            lower = [re.sub(r"([.,'?!])", r" \1 ", line.lower()) for line in part]
            (folder / f"{name}.low.{side}").write_text(
                "".join(" ".join(line.split()) + "\n" for line in lower), encoding="utf-8"
            )
        if side == "en":  # paragraphs, and conjunctions at the beginning of some sentences
            plain = [f"However , {line}" if at % 3 == 1 else line for at, line in enumerate(lines[40:])]
            blank = ["\n" if at % 12 == 11 else "" for at in range(len(plain))]
            text = "".join(line + end for line, end in zip(plain, blank, strict=True))
            (folder / "plain.en").write_text(text, encoding="utf-8")
    shutil.copytree(INPUTS, folder, dirs_exist_ok=True)


def entry_points(checkout: Path) -> dict[str, str]:
    """command -> module:function, as setup.cfg of the checkout says."""
    config = configparser.ConfigParser()
    config.read(checkout / "setup.cfg", encoding="utf-8")
    rows = config["options.entry_points"]["console_scripts"].strip().splitlines()
    return {name.strip(): target.strip() for name, target in (row.split("=") for row in rows)}


def environment(folder: Path, checkout: Path) -> dict[str, str]:
    """What makes commands take the code of one checkout, and leave the user's cache alone."""
    own = {"PYTHONPATH": str(checkout), "NMT_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **own}


def run(command: str, folder: Path, checkout: Path, commands: dict[str, str]) -> str:
    """Exit status and standard output, by a process of its own. Standard error is left aside: it has
    times."""
    name, *arguments = shlex.split(command)
    module, _, function = commands[name].partition(":")
    code = f"import sys; from {module} import {function} as main; sys.argv[0] = {name!r}; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=environment(folder, checkout),
        capture_output=True,
        text=True,
        check=False,
    )
    return answer(done.returncode, done.stdout, done.stderr)


def answer(status: int, printed: str, error: str) -> str:
    told = f"\n{error.strip()}" if status else ""
    return f"exit status {status}{told}\n{printed}"


class Side:
    """The code of one checkout at work in one folder; a command takes no time to start (forks.py)."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.checkout, self.folder, self.commands = checkout, folder, entry_points(checkout)
        self.streams = [folder.with_name(f"{folder.name}.{name}") for name in ("stdout", "stderr")]
        self.words: list[str] = []
        self.sums: dict[Path, tuple[int, str]] = {}
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(FORKS)],
            cwd=folder,
            env=environment(folder, checkout),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def check(self) -> None:
        """SystemExit unless the code that was imported is that of the checkout."""
        if (code := self.read()) != str(self.checkout):
            raise SystemExit(f"expected the code of {self.checkout}, but it is that of {code or 'nobody'}")

    def read(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().rstrip("\n")

    def start(self, command: str) -> None:
        """Start a command; `finish` waits for it."""
        self.words = shlex.split(command)
        argv = self.words[: self.words.index(ASK)] if ASK in self.words else self.words
        streams = dict(zip(("stdout", "stderr"), map(str, self.streams), strict=True))
        for path in self.streams:
            path.write_text("", encoding="utf-8")
        request = {"argv": argv, "entry": self.commands.get(argv[0], "missing:missing"), **streams}
        assert self.process.stdin
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def finish(self) -> str:
        """Exit status and standard output; of a server its answers."""
        child, told = int(self.read()), ""
        if ASK in self.words:
            told = "".join(self.answers(self.words[self.words.index(ASK) + 1 :]))
            told = re.sub(r'"(seconds|version)":[^,}]+', "", told)
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.kill(child, signal.SIGTERM)
        status = int(self.read())
        printed, error = (path.read_text(encoding="utf-8") for path in self.streams)
        if told:  # the server's own output is a record of requests, with times
            printed = told
        lasting = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", printed.replace(str(self.folder), "FOLDER"))
        return answer(status, lasting, error)

    def answers(self, questions: list[str]) -> Iterator[str]:
        """What the server that was started answers to `PATH` or `PATH JSON`."""
        end = time.monotonic() + HANG
        while not (address := re.search(r"http://\S+:\d+", self.streams[1].read_text(encoding="utf-8"))):
            if time.monotonic() > end:
                return
            time.sleep(0.1)
        for question in questions:
            path, _, data = question.partition(" ")
            request = urllib.request.Request(
                address[0] + path,
                data.encode() or None,
                {"Content-Type": "application/json"} if data else {},
            )
            try:
                with urllib.request.urlopen(request, timeout=HANG) as reply:
                    yield f"{path}\n{reply.read().decode()}\n"
            except OSError as error:  # HTTPError among them
                yield f"{path}\n{error}\n"

    def contents(self) -> dict[str, str]:
        """name -> checksum of each file of the folder."""
        return contents(self.folder, self.sums)

    def stop(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def contents(folder: Path, sums: dict[Path, tuple[int, str]]) -> dict[str, str]:
    """name -> checksum of each file; of a .gz what it holds, of weights their tensors by name. `sums` keeps
    them, with the time at which a file was written."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not NOT_COMPARED.search(str(path.relative_to(folder))):
            written = path.stat().st_mtime_ns
            if path not in sums or sums[path][0] != written:
                sums[path] = written, checksum(path, folder)
    return {str(path.relative_to(folder)): sums[path][1] for path in sums if path.exists()}


def checksum(path: Path, folder: Path) -> str:
    """Of what is the same wherever, and however fast, it was written."""
    data = path.read_bytes()
    if path.suffix == ".pt":
        return checksum_of_tensors(path)
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    data = re.sub(rb"[^\n]* (?:a|per) CPU second\n", b"", data.replace(os.fsencode(folder), b"FOLDER"))
    return hashlib.sha256(data).hexdigest()


def checksum_of_tensors(path: Path) -> str:
    import torch

    digest = hashlib.sha256()

    def add(name: str, value: object) -> None:
        if isinstance(value, dict):
            for key in sorted(value, key=str):
                add(f"{name}/{key}", value[key])
        elif isinstance(value, torch.Tensor):
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(
                value.contiguous().view(torch.uint8).numpy().tobytes()
                if value.dim()
                else repr(value.item()).encode()
            )
        elif "seconds" not in name and not name.startswith("/sizes"):  # of logs, which hold times
            digest.update(f"{name} {value!r}".encode())

    add("", torch.load(path, weights_only=True))
    return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare what two checkouts write.")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--work", type=Path, help="an empty folder, kept; a temporary one unless given")
    parser.add_argument("--only", default="", metavar="PATTERN", help="compare only the commands that match")
    args = parser.parse_args()
    work = (args.work or Path(tempfile.mkdtemp(prefix="same-bytes-"))).resolve()
    checkouts = [args.before.resolve(), args.after.resolve()]
    folders = [work / "before", work / "after"]
    for folder in folders:
        folder.mkdir(parents=True)
        write_corpus(folder, checkouts[0])
    sides = [Side(*pair) for pair in zip(checkouts, folders, strict=True)]
    try:
        for side in sides:
            side.check()
        differing, failing = compare(sides, args.only)
    finally:
        for side in sides:
            side.stop()
    print(f"{differing} commands differ, {failing} fail; {work}")
    return int(differing + failing > 0)


def compare(sides: list[Side], pattern: str) -> tuple[int, int]:
    """Run the commands, print a line for each; how many differ, and how many fail on both sides."""
    known = [side.contents() for side in sides]
    differing = failing = 0
    for command in COMMANDS.read_text(encoding="utf-8").splitlines():
        if not command.strip() or command.startswith("#") or not re.search(pattern, command):
            continue
        for side in sides:
            side.start(command)
        printed = [side.finish() for side in sides]
        now = [side.contents() for side in sides]
        written = {
            name
            for before, after in zip(known, now, strict=True)
            for name in before.keys() | after.keys()
            if before.get(name) != after.get(name)
        }
        unlike = sorted(name for name in written if now[0].get(name) != now[1].get(name))
        known = now
        if printed[0] != printed[1]:
            unlike.append("stdout or exit status")
        failed = "" if all(text.startswith("exit status 0") for text in printed) else " (fails)"
        differing += bool(unlike)
        failing += bool(failed)
        verdict = "DIFFERS" if unlike else "same"
        print(f"{verdict}{failed}\t{command}\t{', '.join(unlike) or len(written)}", flush=True)
        if printed[0] != printed[1] or failed:
            for name, text in zip(("before", "after"), printed, strict=True):
                print(f"  {name}: {text.rstrip()}")
    return differing, failing


if __name__ == "__main__":
    sys.exit(main())
