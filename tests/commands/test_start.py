"""What each command loads: no command imports torch, or another heavy library, unless it computes with it.
Each job runs in a process of its own."""

import gzip
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT, write_corpus
from tests.fork_server import entry_points

HEAVY = frozenset(
    "torch numpy numba scipy sklearn matplotlib sacrebleu omegaconf sacremoses starlette tqdm lxml".split()
)
# Commands that always compute with torch: training, translating, exporting and so on.
TORCH = frozenset(
    "nmt-average nmt-export nmt-import nmt-mrf nmt-sample nmt-train nmt-translate "
    "smt-build smt-propose".split()
)
# A job of each other command, and the heavy libraries that it may load besides numpy.
JOBS = [
    ("nmt-tokenize -l en --input train.en --output words", ""),
    ("nmt-truecase train --input train.en --output truecase", ""),
    ("nmt-clean --source train.en --target train.fr --output-source c.en --output-target c.fr", ""),
    ("nmt-subword learn --merges 20 --input train.en --output codes", "tqdm"),
    ("nmt-vocab --input train.en --output vocab", ""),
    ("nmt-dictionary learn --size 60 --input train.fr --output dictionary", ""),
    ("nmt-ngram --input train.fr --order 2 --estimator own --discount-fallback --output own.arpa", ""),
    ("nmt-score lm.arpa --input dev.fr --output scores", ""),
    ("nmt-perplexity lm.arpa --input dev.fr --output perplexity", ""),
    ("nmt-interpolate lm.arpa lm.arpa --input dev.fr --tokenized --output mixture", ""),
    ("nmt-perplexity mixture --input dev.fr --tokenized --output perplexity", ""),
    ("nmt-analyze ngrams --reference dev.fr --hypothesis dev.fr dev.en --output ngrams", "sacrebleu lxml"),
    ("nmt-analyze report dev.fr --source dev.en --reference dev.fr --output report.html", "sacrebleu lxml"),
    ("nmt-init new --source train.en --target train.fr --fast --no-measure", "omegaconf"),
    (
        "nmt-analyze by-segmented --run run --source dev.en --reference dev.fr --hypothesis dev.fr"
        " --output cut",
        "sacrebleu lxml omegaconf matplotlib",
    ),
    ("nmt-serve moses=model --port 0", "numba scipy starlette lxml"),
    ("smt-score-table table.gz --feature lm=lm.arpa --output scored.gz", ""),
    ("smt-filter-table table.gz --input dev.en --output filtered.gz", ""),
    ("smt-ini check model/moses.ini", ""),
    ("smt-moses compact table.gz --moses moses --output compact", ""),
    ("smt-select --in-domain dev.en --general train.en --output selected --keep 10", ""),
    ("smt-align --source train.en --target train.fr --output points", "numba scipy"),
    ("smt-extract --source train.en --target train.fr --alignment points --output t.gz", "numba scipy"),
    ("smt-train smt --source train.en --target train.fr --order 2 -q", "numba scipy"),
    ("smt-cache list", ""),
    ("smt-compile model --output compiled", "numba scipy"),
    ("smt-decode model --input dev.en --output best --n-best-list list --n-best 5", "numba scipy"),
    (
        "smt-tune model --source dev.en --reference dev.fr --iterations 1 --n-best 5 --restarts 2"
        " --output tuned.ini --work tuning",
        "numba scipy",
    ),
    ("smt-rescore list --source dev.en --feature lm=lm.arpa --output rescored", "sacrebleu lxml"),
    ("smt-tune-nbest --n-best list --reference dev.fr --output weights", "numba scipy"),
]
# What --help loads besides: estimators, dictionaries, analyses, aligners, tuners, the cache.
HELP = dict.fromkeys(
    "nmt-init nmt-ngram nmt-interpolate nmt-dictionary smt-align smt-train smt-build smt-propose "
    "smt-cache".split(),
    "numpy",
)
HELP |= {"nmt-analyze": "numpy sacrebleu lxml"} | dict.fromkeys(
    ("smt-tune", "smt-tune-nbest"), "numpy numba scipy"
)

# Runs a command and prints which libraries it has loaded. The server ends once its engines are loaded.
CODE = """
import atexit, importlib, os, sys
name, module, function, heavy, report, *sys.argv = sys.argv[1:]
atexit.register(lambda: os.write(int(report), " ".join(set(heavy.split()) & set(sys.modules)).encode()))
if name == "nmt-serve" and "--help" not in sys.argv:
    importlib.import_module("nmt.serve.server").run = lambda *arguments: None
sys.exit(getattr(importlib.import_module(module), function)())
"""


def loaded_libraries(line: str, folder: Path) -> set[str]:
    """Run a command in a process of its own; returns the heavy libraries that it has loaded."""
    name, *arguments = shlex.split(line)
    reading, writing = os.pipe()
    entry = entry_points()[name]
    words = [name, entry.module, entry.attr, " ".join(HEAVY), str(writing), name, *arguments]
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words], cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NMT_CACHE": str(folder / "cache")}, capture_output=True,
        text=True, pass_fds=[writing], check=False,
    )  # fmt: skip
    os.close(writing)
    with open(reading, encoding="utf-8") as report:
        assert done.returncode == 0, done.stderr
        return set(report.read().split())


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory, grammar: ModuleType) -> Path:
    """A folder with a corpus, a run, a phrase-based system, its table and its language model, and programs
    that stand in for Moses. Later jobs read what earlier ones write."""
    folder, models = tmp_path_factory.mktemp("start"), ROOT / "tests" / "models"
    write_corpus(folder, grammar, 200, seed=3)
    shutil.copytree(models / "phrase-based", folder / "model")
    shutil.copytree(models / "translator", folder / "run")
    shutil.copy(models / "phrase-based" / "phrase-table.gz", folder / "table.gz")
    shutil.copytree(ROOT / "tests" / "tools" / "inputs" / "moses", folder / "moses")
    arpa = gzip.decompress((models / "phrase-based" / "lm.arpa.gz").read_bytes())
    (folder / "lm.arpa").write_bytes(arpa)
    return folder


def test_each_command_has_a_job() -> None:
    assert set(entry_points()) == {line.split()[0] for line, _ in JOBS} | TORCH


@pytest.mark.ci
def test_help_loads_no_heavy_library(tmp_path: Path) -> None:
    for name in entry_points():
        assert loaded_libraries(f"{name} --help", tmp_path) <= set(HELP.get(name, "").split()), name


@pytest.mark.ci
def test_jobs_load_only_what_they_compute_with(workplace: Path) -> None:
    for line, allowed in JOBS:
        assert loaded_libraries(line, workplace) <= {"numpy", *allowed.split()}, line
