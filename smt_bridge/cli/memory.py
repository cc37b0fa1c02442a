"""The option --memory of smt-extract and smt-train: GB, or with a unit as in 800M."""

import argparse
import sys

from nmt import numbers
from nmt.settings import Range
from smt_bridge.extraction.config import LEAST_MEMORY, ExtractConfig

GB = {"G": 1.0, "M": 1e-3}  # of each unit
OLD = 100  # up to version 0.5 the option was in MB; nobody means this many GB


def add_memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--memory",
        type=gigabytes,
        default=ExtractConfig.memory,
        metavar="GB",
        help="memory for phrase extraction, of each worker; what exceeds it is put into files beside the "
        "output",
    )


def gigabytes(text: str) -> float:
    """An argument type: an amount of memory that phrase extraction can work with."""
    amount, unit = (text[:-1], text[-1]) if text[-1:] in GB else (text, "")
    try:
        value = numbers.real(amount)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}, expected GB, such as 1.5 or 800M") from error
    if not unit and value >= OLD:
        print(f"--memory {text}: taken as MB; without a unit it is now in GB, write {text}M", file=sys.stderr)
        unit = "M"
    value *= GB.get(unit, 1.0)
    if value not in Range(least=LEAST_MEMORY):
        raise argparse.ArgumentTypeError(f"{value:g} GB is out of range, expected {LEAST_MEMORY:g} or more")
    return value
