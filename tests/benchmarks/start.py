"""What a command costs before it does anything: small jobs in turn, with CPU seconds and memory.

    .venv/bin/python tests/benchmarks/start.py [--against CHECKOUT] [--model MODEL ...] [--rounds 5]

`--against`: another checkout, whose commands do the same in turn. `--model`: models of smt-decode, such as a
large and a small one. The first row is `import torch` alone, the least that a command takes that computes
with torch. Caches are warm: each command runs once before.
"""

import argparse
import gzip
import shutil
import sys
import tempfile
from pathlib import Path

from peers import ONE_THREAD, ROOT, compare, cost

MODELS = ROOT / "tests" / "models"
LINE = "the nurses hear her .\n"
JOBS = {
    "nmt-tokenize, one line": ("nmt.cli.tokenize", "-l en --input line.en --output words"),
    "nmt-score, one line, ARPA file": ("nmt.cli.score", "lm.arpa --input line.en --output scores"),
    "smt-decode, one line, no network": ("smt_bridge.cli.decode", "model --input line.en --output best"),
    "smt-rescore by an ARPA file": (
        "smt_bridge.cli.rescore",
        "nbest --source source.en --feature lm=lm.arpa --output rescored",
    ),
    "nmt-translate, one line, torch": (
        "nmt.cli.translate",
        "run --threads 1 --matmul mkl --input line.en --output translation",
    ),
}
CODE = "import importlib, sys; sys.exit(importlib.import_module(sys.argv.pop(1)).main())"
TORCH = "import gc, torch; gc.freeze()"  # commands skip the garbage collection at exit, too


def prepare(folder: Path) -> None:
    """Copy the models of the tests, and one line of text."""
    shutil.copytree(MODELS / "phrase-based", folder / "model")
    shutil.copytree(MODELS / "translator", folder / "run")
    shutil.copy(MODELS / "phrase-based.nbest", folder / "nbest")
    shutil.copy(MODELS / "tokenized.en", folder / "source.en")
    (folder / "lm.arpa").write_bytes(gzip.decompress((MODELS / "phrase-based" / "lm.arpa.gz").read_bytes()))
    (folder / "line.en").write_text(LINE, encoding="utf-8")


def command(checkout: Path, folder: Path, module: str, arguments: str) -> list[str]:
    """A command of a checkout, which need not be installed."""
    own = [f"PYTHONPATH={checkout}", f"NMT_CACHE={folder / 'cache'}"]
    return ["env", *own, sys.executable, "-c", CODE, module, *arguments.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description="What commands cost before they do anything.")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT")
    parser.add_argument("--model", type=Path, nargs="+", default=[], help="folders of smt-train")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    checkouts = {str(args.against): args.against.resolve()} if args.against else {}
    checkouts["this checkout"] = ROOT
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        floor = {"python -c 'import torch'": [sys.executable, "-c", TORCH]}
        compare("import torch", floor, folder, args.rounds)
        models = {
            f"smt-decode, one line, {model}": (
                "smt_bridge.cli.decode",
                f"{model.resolve()} --input line.en --output best",
            )
            for model in args.model
        }
        for job, (module, arguments) in (JOBS | models).items():
            variants = {
                title: command(checkout, folder, module, arguments) for title, checkout in checkouts.items()
            }
            for line in variants.values():
                cost(line, folder, ONE_THREAD)  # fills caches
            compare(job, variants, folder, args.rounds)


if __name__ == "__main__":
    main()
