"""What actions of nmt-analyze share: their list, what they read, what they write."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

import nmt.analysis
from nmt.analysis.actions import Findings, ResultTable, add_output, record_table
from nmt.analysis.hard_words import read_units, read_vocabularies
from nmt.analysis.systems import SystemOutput, TestSet, read_systems, score_summary, unique_names
from nmt.cli import analyze
from nmt.cli.analyze import ANALYSES
from nmt.cli.options import Parser
from nmt.errors import ConfigError, UserError
from nmt.io import files
from nmt.text.vocab import Vocab

# ---- base --------------------------------------------------------------------------------------------------


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


# ---- inputs ------------------------------------------------------------------------------------------------
# What analyses read.


def test_vocabularies_are_two_files_of_words(tmp_path: Path) -> None:
    for name, word in (("s", "a"), ("t", "b")):
        Vocab({word: 1}, 9).save(tmp_path / name)
    source, target = read_vocabularies([f"{tmp_path}/s", f"{tmp_path}/t"])
    assert "a" in source.ids and "b" in target.ids
    with pytest.raises(ConfigError, match="expected a run directory, or a source and a target"):
        read_vocabularies([str(tmp_path)] * 3)


def test_the_summary_names_systems_only_where_there_are_several() -> None:
    test = TestSet(["a"], [["b"]])
    one, two = SystemOutput("one", ["b"], test), SystemOutput("two", ["c"], test)
    assert score_summary([one])[0].startswith("BLEU = ")
    assert [line.split(" ")[0] for line in score_summary([one, two])] == ["one:", "one:", "two:", "two:"]


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


# ---- analyze -----------------------------------------------------------------------------------------------
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


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            {"number": 7},
            r"NMT_PLUGINS: \S+test_actions\.py:\d+: \S+Wrong\.run: returned dict, expected Findings",
        ),
        ([], "returned list, expected Findings or None"),
        (Findings(ResultTable({"a": "", "b": ""}, [[1]])), r"row \[1\] does not fit the columns a, b: "),
        (Findings(ResultTable({"a": ".2f"}, [["x"]])), r"analysis: row \['x'\] does not fit .* a: .* 'f'"),
    ],
)
def test_what_an_analysis_must_not_return(
    monkeypatch: pytest.MonkeyPatch, result: object, message: str
) -> None:
    """One line instead of a traceback, which would not name the analysis."""

    class Wrong(Toy):
        def run(self, args: argparse.Namespace) -> Findings:
            return result  # type: ignore[return-value]

    monkeypatch.setitem(ANALYSES, "wrong", Wrong)
    with pytest.raises(ConfigError, match=message):
        analyze.command(["wrong"])


@pytest.mark.parametrize("name", ANALYSES)
def test_every_analysis_describes_itself_and_its_options(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        analyze.main([name, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert stop.value.code == 0 and ANALYSES[name].help in shown and "--output" in shown


# ---- systems -----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, lines in (("s", ["a", "b"]), ("r", ["u", "v"]), ("r2", ["w", "x"]), ("h", ["u", "w"])):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    (tmp_path / "n").write_text("0 ||| u ||| F= 1 ||| 1\n0 ||| x ||| F= 0 ||| 0\n1 ||| w ||| F= 1 ||| 1\n")
    return tmp_path


def test_a_text_and_an_n_best_list_of_the_same_translations(folder: Path) -> None:
    text, best = read_systems("s", ["r", "r2"], ["h", "n"])
    assert text.hypotheses == best.hypotheses == ["u", "w"]
    assert (text.name, best.name) == ("h", "n") and text.test is best.test
    assert text.test.sources == ["a", "b"] and text.test.references == [["u", "v"], ["w", "x"]]


def test_without_a_source_the_first_reference_stands_for_it(folder: Path) -> None:
    (system,) = read_systems("", ["r", "r2"], ["h"])
    assert system.test.sources == ["u", "v"] and system.test.references == [["u", "v"], ["w", "x"]]


def test_lowercase_is_sacrebleus_lc(folder: Path) -> None:
    (folder / "R").write_text("The dog sees a cat\nthe cat sleeps all day\n")
    (folder / "H").write_text("the Dog sees a Cat\nThe cat sleeps all night\n")
    (cased,) = read_systems("s", ["R"], ["H"])
    (lower,) = read_systems("s", ["R"], ["H"], lowercase=True)
    texts = [list(files.read_lines(folder / name)) for name in "HR"]
    expected = BLEU(lowercase=True).corpus_score(texts[0], [texts[1]])
    assert lower.bleu().score == pytest.approx(expected.score) and lower.bleu().score > cased.bleu().score
    expected_chrf = CHRF(lowercase=True).corpus_score(texts[0], [texts[1]])
    assert (
        lower.chrf().score == pytest.approx(expected_chrf.score) and lower.chrf().score > cased.chrf().score
    )
    assert "case:lc" in lower.bleu().signature and "case:lc" in lower.chrf().signature
    assert (lower.words[0], cased.words[0]) == ("the dog sees a cat".split(), "the Dog sees a Cat".split())


def test_names_are_short_where_they_differ() -> None:
    assert unique_names(["x/a", "y/b"]) == ["a", "b"]
    assert unique_names(["x/a", "y/a"]) == ["x/a", "y/a"]
    assert unique_names(["."]) == ["."]  # which has no file name


# ---- table -------------------------------------------------------------------------------------------------
# Tables as lines of TSV.


@dataclass
class Record:
    name: str
    score: float | None


def test_values_have_the_format_of_their_column_and_none_is_empty() -> None:
    table = record_table(Record, [Record("a", 1 / 3), Record("b", None)], score=".2f")
    assert list(table.lines()) == ["name\tscore", "a\t0.33", "b\t"]


def test_a_name_with_a_tab_stays_in_its_column() -> None:
    assert list(ResultTable({"system": "", "bleu": ".1f"}, [["a\tb\nc", 1]]).lines())[1:] == ["a b c\t1.0"]


# ---- init --------------------------------------------------------------------------------------------------
# The public names of nmt.analysis.


def test_every_public_name_is_there() -> None:
    for name in nmt.analysis.__all__:
        assert getattr(nmt.analysis, name).__name__ == name
    assert set(nmt.analysis.__all__) == set(nmt.analysis.MODULES) <= set(dir(nmt.analysis))


def test_importing_it_is_cheap() -> None:
    code = "import sys, nmt.analysis; sys.exit('numpy' in sys.modules or 'sacrebleu' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
