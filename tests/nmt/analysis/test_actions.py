"""What actions of nmt-analyze share: their list, what they read, what they write."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.analysis.actions import Findings, ResultTable, add_output
from nmt.analysis.known_words import read_vocabularies
from nmt.analysis.systems import SystemOutput, TestSet, check_names, score_summary
from nmt.analysis.trained_runs import read_units
from nmt.cli import analyze
from nmt.cli.analyze import ANALYSES
from nmt.cli.options import Parser
from nmt.errors import ConfigError, UserError
from nmt.io import files
from nmt.text.vocab import Vocab

# ---- test base ---------------------------------------------------------------------------------------------


TABLE = ResultTable({"a": ""}, [[1]])


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


# ---- test inputs -------------------------------------------------------------------------------------------
# What analyses read.


def test_vocabularies_are_two_files_of_words(tmp_path: Path) -> None:
    for name, word in (("s", "a"), ("t", "b")):
        Vocab({word: 1}, 9).save(tmp_path / name)
    source, target = read_vocabularies([f"{tmp_path}/s", f"{tmp_path}/t"])
    assert "a" in source.ids and "b" in target.ids
    for given in ([f"{tmp_path}/s"], [str(tmp_path)] * 3):
        with pytest.raises(ConfigError, match="expected a run directory, or a source and a target"):
            read_vocabularies(given)


def test_the_summary_names_systems_only_where_there_are_several() -> None:
    test = TestSet(["a"], [["b"]])
    one, two = SystemOutput("one", ["b"], test), SystemOutput("two", ["c"], test)
    assert score_summary([one])[0].startswith("BLEU = ")
    assert [line.split(" ")[0] for line in score_summary([one, two])] == ["one:", "one:", "two:", "two:"]


def test_each_system_has_a_name_or_none_has() -> None:
    check_names(None, ["a", "b"], "runs")
    with pytest.raises(ConfigError, match="1 names for 2 runs"):
        check_names(["x"], ["a", "b"], "runs")


MODELS = Path(__file__).resolve().parents[2] / "models"


def test_units_of_a_run_join_to_its_words() -> None:
    lines = list(files.read_lines(MODELS / "source.en"))
    found = read_units(str(MODELS / "translator"), TestSet(lines, [lines]), tokenized=False)
    assert found is not None
    source, _ = found
    assert any(unit.endswith("@@") for units in source for unit in units)
    assert " ".join(source[0]).replace("@@ ", "") == "a boy does not follow the man ."


def test_a_run_of_whole_words_cuts_none(tiny: Path) -> None:
    assert read_units(str(tiny / "run"), TestSet(["a"], [["b"]]), tokenized=False) is None


def test_subwords_are_never_unknown() -> None:
    with pytest.raises(ConfigError, match=r"hold subword units.* take --train"):
        read_vocabularies([str(MODELS / "translator")])


# ---- test analyze ------------------------------------------------------------------------------------------
# nmt-analyze: its actions are those of the dict, plugins included.


class Toy:
    """An analysis of no input."""

    help = "One number."

    def add_options(self, parser: Parser) -> None:
        parser.add_argument("--number", default="7")
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        return Findings(ResultTable({"number": ""}, [[args.number]]))


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
