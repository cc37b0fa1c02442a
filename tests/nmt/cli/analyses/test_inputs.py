"""What analyses read."""

from pathlib import Path

import pytest

from nmt import files
from nmt.analysis.systems import System, TestSet
from nmt.cli.analyses.inputs import check_names, read_units, read_vocabularies, scores_of
from nmt.errors import ConfigError
from nmt.text.vocab import Vocab


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
    one, two = System("one", ["b"], test), System("two", ["c"], test)
    assert scores_of([one])[0].startswith("BLEU = ")
    assert [line.split(" ")[0] for line in scores_of([one, two])] == ["one:", "one:", "two:", "two:"]


def test_each_system_has_a_name_or_none_has() -> None:
    check_names(None, ["a", "b"], "runs")
    with pytest.raises(ConfigError, match="1 names for 2 runs"):
        check_names(["x"], ["a", "b"], "runs")


GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "0.5.0"


def test_units_of_a_run_join_to_its_words() -> None:
    lines = list(files.read_lines(GOLDEN.parent / "source.en"))
    found = read_units(str(GOLDEN / "translator"), TestSet(lines, [lines]), tokenized=False)
    assert found is not None
    source, _ = found
    assert any(unit.endswith("@@") for units in source for unit in units)
    assert " ".join(source[0]).replace("@@ ", "") == "a boy does not follow the man ."


def test_a_run_of_whole_words_cuts_none(tiny: Path) -> None:
    assert read_units(str(tiny / "run"), TestSet(["a"], [["b"]]), tokenized=False) is None


def test_subwords_are_never_unknown() -> None:
    with pytest.raises(ConfigError, match=r"hold subword units.* take --train"):
        read_vocabularies([str(GOLDEN / "translator")])
