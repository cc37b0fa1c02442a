"""Do two checkouts write the same? Runs the same commands by the code of either and compares their files.

    python tests/tools/same_bytes.py BEFORE AFTER [--work DIR] [--only PATTERN]

Exit status 1 when something differs. See README.md.
"""

import argparse
import configparser
import gzip
import hashlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

SIZE = 300  # sentences of the corpus
# Times, logs, copies of the settings, and checksums of files that hold some of these.
COMMANDS = Path(__file__).with_name("commands.txt")  # in order: later ones read what earlier ones write
NOT_COMPARED = re.compile(
    r"(^|/)(version|config\.yaml|train\.json|tune\.json|.*\.scores\.json|inputs\.json|manifest\.json|matmul\.tsv|train\.tsv|dev\.tsv|job\.json"
    r"|state\.json|.*\.log|\.lock|data/.*|cache/.*|events\.out.*|.*\.pdf|.*\.png|.*\.svg)$|/__pycache__/"
)

TRANSLATOR_YAML = """run: unset
threads: 1
matmul: mkl
data:
  {train_source: train.en, train_target: train.fr, dev_source: dev.en, dev_target: dev.fr,
   source: {language: en, case: lower}, target: {language: fr, case: lower}}
training:
  {optimizer: adam, learning_rate: 0.01, cost: word, batch_size: 16, pool: 3, max_steps: 60,
   validate_every: 20, log_every: 10, dev_beam: 2, tensorboard: false}
"""
LM_YAML = """run: unset
threads: 1
matmul: mkl
data: {train_text: lower.fr, dev_text: dev.fr, target: {language: fr, case: lower}}
lm: {embedding: 16, hidden: 16, dropout: 0.1, init_scale: 0.1}
training:
  {optimizer: adam, learning_rate: 0.01, cost: word, batch_size: 16, max_steps: 40, validate_every: 20,
   log_every: 10, tensorboard: false}
"""


def write_corpus(folder: Path, checkout: Path, size: int = SIZE) -> None:
    """By the grammar of one checkout, for both."""
    code = (
        "import sys; sys.path.insert(0, 'recipes/quickstart'); from grammar import Writer, text\n"
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
    (folder / "translator.yaml").write_text(TRANSLATOR_YAML, encoding="utf-8")
    (folder / "lm.yaml").write_text(LM_YAML, encoding="utf-8")


def entry_points(checkout: Path) -> dict[str, str]:
    """command -> module:function, as setup.cfg of the checkout says."""
    config = configparser.ConfigParser()
    config.read(checkout / "setup.cfg", encoding="utf-8")
    rows = config["options.entry_points"]["console_scripts"].strip().splitlines()
    return {name.strip(): target.strip() for name, target in (row.split("=") for row in rows)}


def run(command: str, folder: Path, checkout: Path, commands: dict[str, str]) -> str:
    """Exit status and standard output. Standard error is left aside: it has times."""
    name, *arguments = shlex.split(command)
    module, _, function = commands[name].partition(":")
    code = f"import sys; from {module} import {function} as main; sys.argv[0] = {name!r}; sys.exit(main())"
    env = {**os.environ, "PYTHONPATH": str(checkout), "NMT_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={**env, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    error = f"\n{done.stderr.strip()}" if done.returncode else ""
    return f"exit status {done.returncode}{error}\n{done.stdout}"


def contents(folder: Path) -> dict[str, str]:
    """name -> checksum of each file; of a .gz what it holds, of weights their tensors by name."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and not NOT_COMPARED.search(name):
            found[name] = checksum(path, folder)
    return found


def checksum(path: Path, folder: Path) -> str:
    """Of what is the same wherever, and however fast, it was written."""
    data = path.read_bytes()
    if path.suffix == ".pt":
        return checksum_of_tensors(path)
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    data = re.sub(rb"[^\n]* a CPU second\n", b"", data.replace(os.fsencode(folder), b"FOLDER"))
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
    work = args.work or Path(tempfile.mkdtemp(prefix="same-bytes-"))
    checkouts = [args.before.resolve(), args.after.resolve()]
    folders = [work / "before", work / "after"]
    for folder in folders:
        folder.mkdir(parents=True)
        write_corpus(folder, checkouts[0])
    points = [entry_points(checkout) for checkout in checkouts]
    known = [contents(folder) for folder in folders]
    different = failing = 0
    for command in COMMANDS.read_text(encoding="utf-8").splitlines():
        if not re.search(args.only, command):
            continue
        printed = [run(command, *which) for which in zip(folders, checkouts, points, strict=True)]
        now = [contents(folder) for folder in folders]
        written = sorted(
            {
                name
                for before, after in zip(known, now, strict=True)
                for name in after
                if before.get(name) != after[name]
            }
        )
        unlike = [name for name in written if now[0].get(name) != now[1].get(name)]
        if printed[0] != printed[1]:
            unlike.append("stdout or exit status")
        failed = "" if printed[0].startswith("exit status 0") else " (fails)"
        different += bool(unlike)
        failing += bool(failed)
        print(
            f"{'DIFFERS' if unlike else 'same'}{failed}\t{command}\t{', '.join(unlike) or len(written)}",
            flush=True,
        )
        if "stdout or exit status" in unlike or failed:
            print(
                *(
                    f"  {side}: {text.rstrip()}"
                    for side, text in zip(("before", "after"), printed, strict=True)
                ),
                sep="\n",
            )
        known = now
    print(f"{different} commands differ, {failing} fail; {work}")
    return int(different + failing > 0)


if __name__ == "__main__":
    sys.exit(main())
