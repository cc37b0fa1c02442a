"""What the faults did, as a table: faults.tsv, and faults.md with what users saw."""

import csv
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from tests.conftest import ROOT

SEEN = "seen"  # separates lines in the last column


@dataclass
class Row:
    """The jobs of one work that met one fault."""

    work: str
    fault: str
    injected: int = 0  # faults
    jobs: int = 0
    starts: int = 0  # of the command, for all jobs
    finished: int = 0  # jobs
    bytes_different: int = 0  # from those of one machine, over all finished jobs
    lines_lost: int = 0
    seconds: int = 0
    seen: list[str] = field(default_factory=list)  # distinct lines on stderr


NAMES = [one.name for one in fields(Row)]


def folder() -> Path:
    return Path(os.environ.get("FAULTS_REPORT", ROOT / "build" / "faults"))


def begin() -> None:
    """A new report."""
    folder().mkdir(parents=True, exist_ok=True)
    with (folder() / "faults.tsv").open("w", encoding="utf-8", newline="") as stream:
        writer(stream).writeheader()
    write_page([])


def add(row: Row) -> None:
    """One more row, in both files."""
    with (folder() / "faults.tsv").open("a", encoding="utf-8", newline="") as stream:
        writer(stream).writerow({**asdict(row), SEEN: " | ".join(row.seen)})
    with (folder() / "faults.tsv").open(encoding="utf-8", newline="") as stream:
        write_page(list(csv.DictReader(stream, delimiter="\t")))


def writer(stream: "csv.SupportsWrite[str]") -> "csv.DictWriter[str]":  # type: ignore[name-defined]
    return csv.DictWriter(stream, NAMES, delimiter="\t", lineterminator="\n")


def write_page(rows: list[dict[str, str]]) -> None:
    names = [name for name in NAMES if name != SEEN]
    numbers = names[2:]
    total = ["all", "", *(str(sum(int(row[name]) for row in rows)) for name in numbers)]
    head = [name.replace("_", " ") for name in names]
    table = [head, ["---"] * len(names), *([row[name] for name in names] for row in rows), total]
    lines = [
        "# Faults",
        "",
        *("| " + " | ".join(cells) + " |" for cells in table),
        "",
        "## What users saw",
        "",
    ]
    for row in rows:
        seen = [f"      {line}" for line in row[SEEN].split(" | ") if line]
        lines += [f"- {row['work']}, {row['fault']}" + (":" if seen else ": nothing"), "", *seen, ""]
    (folder() / "faults.md").write_text("\n".join(lines), encoding="utf-8")


def distinct(lines: Iterable[str]) -> list[str]:
    """Each line once; numbers do not matter."""
    found: dict[str, str] = {}
    for line in lines:
        found.setdefault(without_numbers(line), line)
    return list(found.values())


def without_numbers(line: str) -> str:
    return " ".join("".join(" " if one in "0123456789.," else one for one in line).split())
