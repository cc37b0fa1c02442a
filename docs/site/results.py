"""The measured results: tables of README.md and docs/results.md, and each number repeated.

python -m docs.site.results tables         write the tables into the pages
python -m docs.site.results repeat NAME    repeat a number

The exit status is 1 if a number differs, 2 if it cannot be repeated.

docs/results/README.md describes the files that both read."""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath

import yaml

from nmt.errors import ConfigError, DataError, UserError

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "results"
TABLES = "tables.yaml"
BLOCK = re.compile(r"(<!-- table:(\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Measurement:
    """A number as it was published. `value`: with its decimals; `tolerance`: how far a repetition may be
    from it; `print`: a shell command that prints the repeated number, "" if none does."""

    value: str
    tolerance: float = 0.0
    print: str = ""

    def agrees(self, repeated: float) -> bool:
        """Whether a repeated number is within the tolerance; NaN never is."""
        return abs(repeated - float(self.value)) <= self.tolerance + 1e-9


@dataclass(frozen=True, kw_only=True)
class Result:
    """A row of the tables: the keys of its file, see docs/results/README.md."""

    what: str
    data: str
    setting: str
    notes: str
    metric: str
    values: Mapping[str, Measurement]
    commands: Sequence[str]
    seeds: str
    source: str
    machine: str
    commit: str
    date: str
    published: Mapping[str, str] = field(default_factory=dict)
    remark: str = ""

    def cell(self, column: str, page: str) -> str:
        """The text of a column in a table of the page: `what` is a link to the notes."""
        if column == "what":
            file, _, anchor = self.notes.partition("#")
            link = os.path.relpath(file, PurePosixPath(page).parent)
            return f"[{self.what}]({link}#{anchor})"
        if column in ("data", "setting"):
            return str(getattr(self, column))
        return self.values[column].value if column in self.values else self.published.get(column, "")


def read_yaml(path: Path) -> dict[str, object]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise DataError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected a mapping of keys to values")
    return content


def names() -> list[str]:
    """The names of all results."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml") if path.name != TABLES)


def read_result(name: str) -> Result:
    """Read docs/results/NAME.yaml. ConfigError for an unknown name, DataError for a malformed file."""
    if name not in names():
        raise ConfigError(f"no result is named {name!r}; the names are those of the files in docs/results")
    path = FOLDER / f"{name}.yaml"
    content = read_yaml(path)
    known = {key.name for key in fields(Result)}
    required = known - {"published", "remark"}
    if wrong := (content.keys() - known) | (required - content.keys()):
        raise DataError(f"{path}: keys unknown or missing: {', '.join(sorted(wrong))}")
    try:
        values = {key: Measurement(**value) for key, value in content.pop("values").items()}  # type: ignore[attr-defined]
        return Result(values=values, **content)  # type: ignore[arg-type]
    except (AttributeError, TypeError) as error:
        raise DataError(f"{path}: values: {error}") from None


def table(page: str, columns: Mapping[str, str], rows: Sequence[str]) -> str:
    """A table in Markdown. `columns`: heading of each column; `rows`: names of results."""
    cells = [[*columns.values()]]
    for name in rows:
        result = read_result(name)
        cells.append([result.cell(column, page) for column in columns])
    lines = ["|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]])


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each page that has tables, and its text as the files say it."""
    tables: dict[str, dict[str, object]] = read_yaml(FOLDER / TABLES)  # type: ignore[assignment]

    def fill(block: re.Match[str]) -> str:
        if block[2] not in tables:
            raise DataError(f"{FOLDER / TABLES}: no table is named {block[2]!r}, which a page has")
        return f"{block[1]}{table(**tables[block[2]])}\n{block[3]}"  # type: ignore[arg-type]

    for page in dict.fromkeys(str(spec["page"]) for spec in tables.values()):
        yield ROOT / page, BLOCK.sub(fill, (ROOT / page).read_text(encoding="utf-8"))


def prepare(name: str, result: Result, folder: Path) -> dict[str, str]:
    """Make the folder of a repetition, with a copy of the recipes, which write to the folder above them.
    Returns the environment of its commands. ConfigError if they need NMT_DATA and it is not set."""
    lines = [*result.commands, *(value.print for value in result.values.values())]
    data = os.environ.get("NMT_DATA", "")
    if not data and (result.source == "user" or any("NMT_DATA" in line for line in lines)):
        raise ConfigError(f"{name} is measured on data that is not ours: set NMT_DATA to the folder of yours")
    shutil.rmtree(folder / "recipes", ignore_errors=True)
    shutil.copytree(ROOT / "recipes", folder / "recipes")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    modules = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    where = {"NMT_DATA": str(Path(data).resolve())} if data else {}
    return {**os.environ, "PATH": path, "PYTHONPATH": modules, **where}


def repeated(line: str, folder: Path, environment: Mapping[str, str]) -> float:
    """The number that a command prints; NaN if it fails or prints something else."""
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    try:
        return float(done.stdout) if done.returncode == 0 else float("nan")
    except ValueError:
        return float("nan")


def repeat(name: str, folder: Path | None = None) -> int:
    """Repeat a result in a folder of its own, runs/results/NAME by default, and print each value as stated
    and as repeated. An interrupted repetition goes on there. Returns the exit status."""
    result = read_result(name)
    folder = folder or ROOT / "runs" / "results" / name
    environment = prepare(name, result, folder)
    if result.remark:
        print(f"note: {result.remark}", flush=True)
    for line in result.commands:
        print(f"$ {line}", flush=True)
        status = subprocess.run(["bash", "-euc", line], cwd=folder, env=environment, check=False).returncode
        if status:
            print(f"{name}: the command above ended with exit status {status}", file=sys.stderr)
            return 1
    agree = True
    print(f"{result.metric}\nvalue\tstated\trepeated\ttolerance\t")
    for key, value in result.values.items():
        if not value.print:
            print(f"{key}\t{value.value}\t\t\tnot repeated: no command prints it")
            continue
        number = repeated(value.print, folder, environment)
        agree &= value.agrees(number)
        verdict = "agrees" if value.agrees(number) else "differs"
        print(f"{key}\t{value.value}\t{number:g}\t{value.tolerance:g}\t{verdict}")
    return 0 if agree else 1


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="docs.site.results", description=__doc__.split("\n")[0])
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("tables", help="write the tables into the pages")
    actions.add_parser("repeat", help="repeat a number").add_argument("name", metavar="NAME")
    args = parser.parse_args(argv)
    try:
        if args.action == "repeat":
            return repeat(args.name)
        for path, text in pages():
            path.write_text(text, encoding="utf-8")
        return 0
    except UserError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
