"""Running an nmt-analyze command and reading its table."""

from pathlib import Path
from xml.etree import ElementTree

from tests.conftest import Command


def analyze(command: Command, folder: Path, kind: str, *options: object) -> tuple[list[dict[str, str]], str]:
    """Rows of the table that a command writes into a folder, and what its SVG says; the PNG is one."""
    out = folder / f"out-{kind}"
    done = command("nmt-analyze", kind, *options, "--output", out, cwd=folder)
    assert done.returncode == 0, done.stderr
    header, *lines = (out / f"{kind}.tsv").read_text(encoding="utf-8").rstrip("\n").split("\n")
    rows = [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
    assert f"{out}/{kind}.svg" in done.stdout
    if kind != "parse":
        assert (out / f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    return rows, " ".join(ElementTree.parse(out / f"{kind}.svg").getroot().itertext())


def the(rows: list[dict[str, str]], **wanted: str) -> dict[str, str]:
    found = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    assert len(found) == 1, (wanted, found)
    return found[0]
