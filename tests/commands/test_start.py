"""What every command does when it starts."""

import configparser
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]


SETUP = configparser.ConfigParser()
SETUP.read(Path(__file__).parents[2] / "setup.cfg", encoding="utf-8")
COMMANDS = [
    line.partition("=")[0].strip()
    for line in SETUP["options.entry_points"]["console_scripts"].strip().splitlines()
]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_loads_no_torch(name: str, command: Command) -> None:
    done = command(name, "--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0 and "usage" in done.stdout
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.split("\n")}
    heavy = {"torch", "numpy", "sacrebleu", "sacremoses", "omegaconf"}
    # Options that stand beside what computes: the estimator, dictionaries, analyses, tuners, the cache.
    with_numpy = "init ngram interpolate dictionary analyze subword tune tune-nbest cache".split()
    if name.partition("-")[2] in with_numpy:
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
