"""Tokenizing 29,000 lines: sacremoses and pyonmttok beside nmt-tokenize, which has sacremoses' rules.

NMT_DATA=... .venv/bin/python -m tests.benchmarks.peers.sacremoses
"""

import os
import tempfile
from pathlib import Path

from nmt.io import files

from . import compare, environment, ours

PYONMTTOK = (
    "import sys, pyonmttok;"
    "pyonmttok.Tokenizer('conservative').tokenize_file(sys.argv[1], sys.argv[2], num_threads=1)"
)


def main() -> None:
    python = environment("tokenizers", "sacremoses==0.2.0", "pyonmttok==1.38.1")
    command = python.parent / "sacremoses"
    for language in ("en", "fr"):
        text = Path(os.environ["NMT_DATA"]).absolute() / f"multi30k/train.{language}"
        sacremoses = f"{command} -q -l {language}"
        with tempfile.TemporaryDirectory() as folder:
            compare(
                f"tokenizing {text.name} of Multi30k, 29,000 lines",
                {
                    "sacremoses tokenize": ["sh", "-c", f"{sacremoses} tokenize <{text} >moses.plain"],
                    "sacremoses normalize tokenize": [
                        "sh", "-c", f"{sacremoses} normalize tokenize <{text} >moses.normalized"
                    ],
                    "pyonmttok (other rules)": [python, "-c", PYONMTTOK, text, "pyonmttok.out"],
                    "nmt-tokenize --escape --no-normalize": ours(
                        f"nmt-tokenize -q -l {language} --escape --no-normalize -i {text} -o ours.plain"
                    ),
                    "nmt-tokenize --escape": ours(
                        f"nmt-tokenize -q -l {language} --escape -i {text} -o ours.normalized"
                    ),
                },
                Path(folder),
            )  # fmt: skip
            for kind in ("plain", "normalized"):
                same = words(f"{folder}/moses.{kind}") == words(f"{folder}/ours.{kind}")
                print(f"  {kind}: {'the same words' if same else 'not the same words'} as sacremoses")


def words(path: str) -> list[list[str]]:
    """The words of each line; sacremoses leaves blanks at the ends of some lines."""
    return [line.split() for line in files.read_lines(path)]


if __name__ == "__main__":
    main()
