"""nmt-analyze: its actions are those of the dict, plugins included."""

import argparse

import pytest

from nmt.analysis.table import Table
from nmt.cli import analyze
from nmt.cli.analyses.base import Findings, add_output
from nmt.cli.analyses.registry import ANALYSES
from nmt.cli.options import Parser


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
