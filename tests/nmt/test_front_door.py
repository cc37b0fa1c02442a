"""The names of the Python API."""

import doctest
from pathlib import Path

import pytest

import nmt

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_that_of_the_changelog() -> None:
    lines = (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8").split("\n")
    number, _, state = (
        next(line for line in lines if line.startswith("## ")).removeprefix("## ").partition(" ")
    )
    assert nmt.__version__ == (f"{number}.dev0" if state == "(unreleased)" else number)


def test_every_public_name_is_there_with_an_example() -> None:
    for name in set(nmt.__all__) - {"__version__"}:
        found = doctest.DocTestFinder().find(getattr(nmt, name), name)
        assert any(part.examples for part in found), f"nmt.{name} has no example"
    assert set(nmt.__all__) <= set(dir(nmt)) and set(nmt.HOMES) == set(nmt.__all__) - {"__version__"}
    with pytest.raises(AttributeError, match="'nmt' has no attribute 'nothing'"):
        nmt.nothing  # noqa: B018
