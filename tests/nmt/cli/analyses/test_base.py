"""What an analysis hands back, as it is written."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.analysis.table import Table
from nmt.cli import analyze
from nmt.cli.analyses.base import Findings
from nmt.errors import UserError

TABLE = Table({"a": ""}, [[1]])


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
    argv = ["subsets", "--longest=x", "-s", "a", "-r", "b", "--hypothesis", "c", "--vocabulary", "d", "e"]
    with pytest.raises(SystemExit):
        analyze.main(argv)
    shown = capsys.readouterr().err
    assert "--longest is now --max-length" in shown and "argument --max-length" in shown
