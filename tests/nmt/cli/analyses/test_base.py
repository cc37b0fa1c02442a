"""What an analysis hands back, as it is written."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.analysis.table import Table
from nmt.cli import analyze
from nmt.cli.analyses.base import Findings, add_output
from nmt.cli.analyses.registry import ANALYSES
from nmt.cli.options import Parser
from nmt.errors import UserError

TABLE = Table({"a": ""}, [[1]])


class Toy:
    """An analysis of no input."""

    help = "One number."

    def add_options(self, parser: Parser) -> None:
        parser.add_argument("--number", default="7")
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        return Findings(Table({"number": ""}, [[args.number]]))


def test_an_analysis_that_is_added_to_the_dict_is_an_action(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(ANALYSES, "toy", Toy)
    assert analyze.main(["toy", "--number", "8"]) == 0
    assert capsys.readouterr().out == "number\n8\n"
    with pytest.raises(SystemExit):
        analyze.main(["--help"])
    assert "One number." in capsys.readouterr().out


@pytest.mark.parametrize("name", ANALYSES)
def test_every_analysis_describes_itself_and_its_options(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        analyze.main([name, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert stop.value.code == 0 and ANALYSES[name].help in shown and "--output" in shown


def test_a_table_goes_to_stdout_without_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    Findings(TABLE, ["summary"], draw=lambda paths: pytest.fail("nowhere to draw")).write("", "name")
    assert capsys.readouterr().out == "a\n1\n"


def test_a_folder_takes_table_and_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def draw(paths: Sequence[Path]) -> None:
        for path in paths:
            path.write_text("figure")

    Findings(TABLE, ["summary"], draw, formats=("svg",)).write(f"{tmp_path}/new", "name")
    assert (tmp_path / "new" / "name.tsv").read_text() == "a\n1\n"
    assert capsys.readouterr().out == f"summary\n{tmp_path}/new/name.tsv\n{tmp_path}/new/name.svg\n"


def test_without_a_figure_the_table_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def draw(paths: object) -> None:
        raise UserError("matplotlib is missing")

    Findings(TABLE, [], draw).write(str(tmp_path), "name")
    assert capsys.readouterr().out == f"{tmp_path}/name.tsv\n"
    assert "no figure: matplotlib is missing" in caplog.text


def test_old_names_of_options_are_accepted_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["subsets", "--longest=x", "-s", "a", "-r", "b", "-t", "c", "--vocabulary", "d", "e"]
    with pytest.raises(SystemExit):
        analyze.main(argv)
    shown = capsys.readouterr().err
    assert "--longest is now --max-length" in shown and "argument --max-length" in shown
