"""The documentation site: every page has its place, links lead to pages, and the generated reference has
every command, option, key and path."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.site import build, reference
from docs.site.man_pages import parsers
from nmt.runs.checkpoint import SECTION_REGISTRIES, config_class
from nmt.training.config import RunConfig
from nmt.training.config_file import Schema, dotted_keys

ROOT = Path(__file__).resolve().parents[1]


def test_every_written_page_is_in_one_part() -> None:
    listed = [name for names in build.PARTS.values() for name in names]
    kinds = ("docs/*.md", "docs/tutorials/*.md", "docs/notebooks/*.ipynb")
    pages = [path for kind in kinds for path in ROOT.glob(kind)]
    written = [str(path.relative_to(ROOT / "docs").with_suffix("")) for path in pages]
    assert sorted(listed) == sorted(written)


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("see [the server](serve.md#limits)", "docs/hybrid.md", "see [the server](serve.md#limits)"),
        ("([serve.md](serve.md))", "docs/hybrid.md", "([](serve.md))"),
        ("[tour](docs/tour.md)", "CONTRIBUTING.md", "[tour](tour.md)"),
        ("[a](../CONTRIBUTING.md)", "docs/tour.md", "[a](contributing.md)"),
        ("[a](../../docs/smt.md)", "recipes/wmt14/README.md", "[a](../smt.md)"),
        ("[these](../recipes/wmt14)", "docs/scale.md", "[these](recipes/wmt14.md)"),
        ("[front](../README.md)", "docs/scale.md", "[front](index.md)"),
        ("[the code](../nmt/errors.py)", "docs/scale.md", "the code (`nmt/errors.py`)"),
        ("[here](#part)", "docs/scale.md", "[here](#part)"),
        ("[x](https://host/a.md)", "docs/scale.md", "[x](https://host/a.md)"),
        ("```\n[a](../nmt)\n```", "docs/scale.md", "```\n[a](../nmt)\n```"),
        ("![curve](images/a.png)", "docs/scale.md", "![curve](images/a.png)"),
        ("![a](../../docs/images/a.png)", "recipes/wmt14/README.md", "![a](../images/a.png)"),
        ("[a](../tests/benchmarks/tuning.md#mbr)", "docs/smt.md", "[a](tuning.md#mbr)"),
    ],
)
def test_links(text: str, path: str, expected: str) -> None:
    assert build.convert_links(text, path, build.written_pages(ROOT)) == expected


def all_options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, each in action.choices.items():
                yield name
                yield from all_options(each)
        elif action.help != argparse.SUPPRESS:
            yield from set(action.option_strings) - reference.COMMON - {"-h"}


def test_a_command_has_all_its_options() -> None:
    for parser in parsers():
        page = reference.command_page(parser)
        missing = [name for name in all_options(parser) if not re.search(rf"{re.escape(name)}[`, \n]", page)]
        assert page.startswith(f"# {parser.prog}\n") and not missing


def test_every_key_of_every_model_is_explained() -> None:
    page = reference.configuration_page()
    for section, registries in SECTION_REGISTRIES.items():
        for kind in (kind for registry in registries for kind in registry):
            schema = Schema(section, config_class(section, kind))
            leaves = [
                key
                for key in dotted_keys(RunConfig) + dotted_keys(schema.config, f"{section}.")
                if not schema.is_section(key)
            ]
            missing = [key for key in leaves if f"| `{key}` |" not in page and key != section]
            assert not missing, kind


def test_values_in_tables_are_escaped() -> None:
    rows = [row for row in reference.configuration_page().split("\n") if row.startswith("| `")]
    assert len(rows) > 150 and all(len(re.findall(r"(?<!\\)\|", row)) == 4 for row in rows)


def test_the_server_is_described() -> None:
    page = reference.http_page()
    assert all(
        f" {path}\n" in page
        for path in ("/api/translate", "/api/score", "/translate", "/languages", "/translate_file")
    )


@pytest.mark.ci
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    for library in ("furo", "myst_nb"):
        pytest.importorskip(library, reason="the site needs the extra docs")
    assert build.main(str(tmp_path), "-Dnb_execution_mode=off") == 0  # tests/test_notebooks.py runs them
    pages = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.html")}
    assert {"index.html", "commands/nmt-train.html", "recipes/wmt14.html", "contributing.html"} <= pages
    for page in pages:  # what it loads lies in the folder
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert not re.findall(
            r"<(?:script|img)[^>]* src=\"https?:|<link[^>]* rel=\"stylesheet\"[^>]*https?:", text
        )
    assert "kneser" in (tmp_path / "searchindex.js").read_text(encoding="utf-8")
