"""COMET by the program comet-score, where it is installed (Rei et al. 2020): a neural metric of source,
translation and reference.

The program runs in an environment of its own, since the package unbabel-comet needs NumPy 1. Its model is a
file on disk; nothing is downloaded.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.systems import SystemOutput
from nmt.cli.arguments import InputPath
from nmt.cli.options import Parser
from nmt.errors import ConfigError, UserError
from nmt.io import files
from nmt.io.numbers import counted

PROGRAM = "comet-score"


def add_model(parser: Parser) -> None:
    """Add --comet-model, which `score_systems` needs."""
    parser.add_argument(
        "--comet-model",
        type=InputPath,
        default="",
        metavar="FILE",
        help=f"model of COMET (.ckpt); --metric comet calls the program {PROGRAM}, if installed",
    )


def check(args: argparse.Namespace) -> None:
    """ConfigError for --metric comet without --comet-model or --source, for --comet-model alone, for several
    references, and if the program is not installed."""
    if ("comet" in args.metric) != bool(args.comet_model):
        raise ConfigError("--metric comet and --comet-model FILE belong together; give both or neither")
    if not args.comet_model:
        return
    if not args.source:
        raise ConfigError("--metric comet: needs the source text; give --source FILE")
    if len(args.reference) != 1:
        raise ConfigError(f"--reference: {len(args.reference)} files, but COMET compares with one")
    find_program()


def add_scores(systems: Sequence[SystemOutput], args: argparse.Namespace) -> None:
    """Score the systems if --metric comet was given, which `check` has checked."""
    if args.comet_model:
        for system, scores in zip(systems, score_systems(systems, args.comet_model), strict=True):
            system.comet = scores


def find_program() -> str:
    """Path of the program. ConfigError if it is not installed."""
    path = shutil.which(PROGRAM)
    if path is None:
        raise ConfigError(
            f"--metric comet: the program {PROGRAM} is not on PATH; install unbabel-comet into an "
            "environment of its own, and put the program on PATH"
        )
    return path


def score_systems(systems: Sequence[SystemOutput], model: str) -> list[NDArray[np.float64]]:
    """Compute the scores of each system's sentences, about 0 to 1, by the first reference. `model`: path of a
    checkpoint. ConfigError if the program is missing, UserError with its last message if it fails."""
    test = systems[0].test
    with tempfile.TemporaryDirectory(prefix="nmt-comet.") as folder:
        names = [str(number) for number in range(len(systems))]
        texts = [test.sources, test.references[0], *(system.hypotheses for system in systems)]
        for name, lines in zip(["source", "reference", *names], texts, strict=True):
            # The program takes \r for the end of a line.
            files.write_text(Path(folder, name), (line.replace("\r", " ") for line in lines))
        process = subprocess.run(
            [
                *(find_program(), "-s", "source", "-r", "reference", "-t", *names),
                *("--model", str(Path(model).absolute()), "--quiet", "--only_system", "--to_json", "scores"),
            ],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
        )
        if process.returncode:
            last = process.stderr.strip().split("\n")[-1]
            raise UserError(f"{PROGRAM} failed with status {process.returncode}: {last}")
        return read_scores(Path(folder, "scores"), names, len(test.sources))


def read_scores(path: Path, names: Sequence[str], count: int) -> list[NDArray[np.float64]]:
    """Read the program's JSON: system -> an object with the key COMET for each of `count` sentences.
    UserError for anything else, and for a score that is not finite."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        scores = [np.array([float(row["COMET"]) for row in content[name]]) for name in names]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{PROGRAM}: its scores cannot be read ({error}); is it version 2?") from error
    for values in scores:
        if len(values) != count:
            mismatch = f"{counted(len(values), 'score')} for {counted(count, 'sentence')}"
            raise UserError(f"{PROGRAM}: {mismatch}; is it version 2?")
        if not np.isfinite(values).all():
            raise UserError(
                f"{PROGRAM}: the score of a sentence is not a finite number; is the model damaged?"
            )
    return scores
