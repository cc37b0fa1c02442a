"""What trained models do: attention, phrases."""

import math
from pathlib import Path

import pytest

from nmt.analysis.attention import attention_table, attention_weights
from nmt.analysis.phrases import PhrasesConfig, choose_sources, compare_phrases, phrases_table
from nmt.errors import DataError
from nmt.runs.run import Run
from tests.conftest import ROOT

# ---- test attention map ------------------------------------------------------------------------------------
# Attention weights of a sentence.


@pytest.fixture(scope="module")
def run() -> Run:
    """A small translator with attention."""
    return Run.of(ROOT / "tests" / "models" / "translator")


def test_each_target_word_spreads_one_over_the_source(run: Run) -> None:
    source, target, found = attention_weights(run, "the man sees", "la femme")
    assert found.shape == (len(target), len(source))
    assert found.sum(1) == pytest.approx(1, abs=1e-5) and source[-1] == target[-1] == "</s>"
    lines = list(attention_table(source, target, found).lines())
    assert len(lines) == 1 + found.size and lines[-1].split("\t")[2:4] == ["</s>", "</s>"]


def test_the_run_translates_where_no_target_is_given(run: Run) -> None:
    source, target, found = attention_weights(run, "The man sees.")
    again = attention_weights(run, "The man sees.", run.translate(["The man sees."])[0])
    assert again[:2] == (source, target) and again[2] == pytest.approx(found)


def test_an_empty_line_is_refused(run: Run) -> None:
    with pytest.raises(DataError, match="no words to attend to"):
        attention_weights(run, " ")


# ---- test phrases ------------------------------------------------------------------------------------------
# Targets of phrases, by the table and by a model.


def test_targets_by_the_table_by_the_model_and_drawn(tmp_path: Path) -> None:
    lines = [
        f"the man ||| {target} ||| 1 1 {p} 1 ||| ||| 1 7 1"
        for target, p in (("le chat", 0.25), ("l' homme", 0.5))
    ]
    (tmp_path / "table").write_text("\n".join(lines) + "\n")
    run = Run.of(ROOT / "tests" / "models" / "translator")
    config = PhrasesConfig(sources=1, min_words=2, min_targets=2, samples=6)
    rows = [row for row in compare_phrases(run, str(tmp_path / "table"), config) if row.kind == "rare"]
    by_table = [row for row in rows if row.by == "table"]
    assert [row.target for row in by_table] == ["l' homme", "le chat"]
    assert by_table[0].ln_table == pytest.approx(math.log(0.5)) and by_table[0].drawn is None
    by_model = [row for row in rows if row.by == "model"]
    assert by_model == sorted(by_model, key=lambda row: -row.ln_model) and len(by_model) == 2
    drawn = [row.drawn or 0 for row in rows if row.by == "samples"]
    assert drawn and 0 < sum(drawn) <= 6
    assert len(list(phrases_table(rows).lines())) == 1 + len(rows)


# ---- test phrase choice ------------------------------------------------------------------------------------
# The source phrases that are shown.


def test_the_most_frequent_and_the_rarest_long_sources_with_enough_targets(tmp_path: Path) -> None:
    """`a b` 5 times, `c d` 3, `e f` 9 but with one target, `g` 9 but of one word."""
    lines = [
        f"{source} ||| {target} ||| 1 ||| ||| 1 {count} 1"
        for source, count, targets in (("a b", 5, "xy"), ("c d", 3, "xy"), ("e f", 9, "x"), ("g", 9, "xy"))
        for target in targets
    ]
    (tmp_path / "table").write_text("\n".join(lines) + "\n")
    config = PhrasesConfig(sources=1, min_words=2, min_targets=2)
    found = [
        (kind, pairs[0].source, len(pairs)) for kind, pairs in choose_sources(str(tmp_path / "table"), config)
    ]
    assert found == [("frequent", b"a b", 2), ("rare", b"c d", 2)]
