"""The outputs of systems, tables, the public names."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

import nmt.analysis
from nmt.analysis.actions import ResultTable, field_values
from nmt.analysis.systems import read_systems, unique_names
from nmt.errors import ConfigError, DataError
from nmt.io import files

# ---- test systems ------------------------------------------------------------------------------------------


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


def test_what_does_not_fit_is_refused(folder: Path) -> None:
    (folder / "short").write_text("u\n")
    with pytest.raises(DataError, match="short: 1 lines, but s has 2"):
        read_systems("s", ["r"], ["short"])
    with pytest.raises(ConfigError, match="1 names for 2 systems"):
        read_systems("s", ["r"], ["h", "n"], names=["one"])
    with pytest.raises(ConfigError, match="nonsense"):
        read_systems("nosuch", ["r"], ["h"], tokenize="nonsense")
    (folder / "gap").write_text("0 ||| u ||| F= 1 ||| 1\n2 ||| w ||| F= 1 ||| 1\n")
    with pytest.raises(DataError, match="sentence 1 is missing"):
        read_systems("s", ["r"], ["gap"])


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


# ---- test table --------------------------------------------------------------------------------------------
# Tables as lines of TSV.


@dataclass
class Record:
    name: str
    score: float | None


def test_values_have_the_format_of_their_column_and_none_is_empty() -> None:
    table = ResultTable({"name": "", "score": ".2f"}, field_values([Record("a", 1 / 3), Record("b", None)]))
    assert list(table.lines()) == ["name\tscore", "a\t0.33", "b\t"]


def test_a_row_of_another_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        list(ResultTable({"name": ""}, [["a", "b"]]).lines())


# ---- test init ---------------------------------------------------------------------------------------------
# The public names of nmt.analysis.


def test_every_public_name_is_there() -> None:
    for name in nmt.analysis.__all__:
        assert getattr(nmt.analysis, name).__name__ == name
    assert set(nmt.analysis.__all__) == set(nmt.analysis.HOMES) <= set(dir(nmt.analysis))


def test_importing_it_is_cheap() -> None:
    code = "import sys, nmt.analysis; sys.exit('numpy' in sys.modules or 'sacrebleu' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
