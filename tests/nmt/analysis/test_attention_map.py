"""Attention weights of a sentence."""

import pytest

from nmt.analysis.attention_map import table, weights
from nmt.errors import DataError
from nmt.runs.run import Run
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def run() -> Run:
    """A small translator with attention."""
    return Run.of(ROOT / "tests" / "golden" / "0.5.0" / "translator")


def test_each_target_word_spreads_one_over_the_source(run: Run) -> None:
    source, target, found = weights(run, "the man sees", "la femme")
    assert found.shape == (len(target), len(source))
    assert found.sum(1) == pytest.approx(1, abs=1e-5) and source[-1] == target[-1] == "</s>"
    lines = list(table(source, target, found).lines())
    assert len(lines) == 1 + found.size and lines[-1].split("\t")[2:4] == ["</s>", "</s>"]


def test_the_run_translates_where_no_target_is_given(run: Run) -> None:
    source, target, found = weights(run, "The man sees.")
    again = weights(run, "The man sees.", run.translate(["The man sees."])[0])
    assert again[:2] == (source, target) and again[2] == pytest.approx(found)


def test_an_empty_line_is_refused(run: Run) -> None:
    with pytest.raises(DataError, match="no words to attend to"):
        weights(run, " ")
