"""What every command does when it starts."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]


COMMANDS = [
    f"nmt-{name}"
    for name in (
        "train",
        "translate",
        "score",
        "analyze",
        "vocab",
        "subword",
        "tokenize",
        "clean",
        "average",
        "ngram",
        "perplexity",
        "sample",
        "dictionary",
    )
]


COMMANDS += [
    f"smt-{name}"
    for name in (
        "score-table",
        "filter-table",
        "rescore",
        "tune-nbest",
        "ini",
        "moses",
        "select",
        "align",
        "extract",
        "train",
        "decode",
        "tune",
        "propose",
    )
]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_loads_no_torch(name: str, command: Command) -> None:
    done = command(name, "--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0 and "usage" in done.stdout
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.split("\n")}
    heavy = {"torch", "numpy", "sacrebleu", "sacremoses", "omegaconf"}
    # Options that stand beside what computes: the estimator, dictionaries, analyses, tuners.
    if name in ("nmt-ngram", "nmt-dictionary", "nmt-analyze", "nmt-subword", "smt-tune", "smt-tune-nbest"):
        heavy -= {"numpy", "sacrebleu"} if name == "nmt-analyze" else {"numpy"}
    assert "argparse" in loaded and not loaded & heavy


def test_thread_policy_is_set_unless_the_user_set_it() -> None:
    code = "import os, nmt; print(os.environ['OMP_WAIT_POLICY'], os.environ['GOMP_SPINCOUNT'])"
    clean = {
        key: value for key, value in os.environ.items() if key not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    }
    for extra, expected in (({}, "PASSIVE 0"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE 0")):
        done = subprocess.run(
            [sys.executable, "-c", code], env={**clean, **extra}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected
