from pathlib import Path

import pytest

from nmt.analysis.buckets import sliding
from nmt.analysis.by_length import by_length, to_tsv
from nmt.metrics import SentenceStatistics, corpus_bleu

SOURCES = ["a b", "a b c", "a b c d e f", "a b c d e"]
REFERENCES = ["x y z v w", "x y z v", "x y z v w u", "x y z v"]
HYPOTHESES = ["x y z v w", "x y z u", "x y z v w u", "v z y x"]


def test_window_one_is_each_length_alone_and_sizes_sum() -> None:
    result = by_length(SOURCES, [REFERENCES], HYPOTHESES, window=1)
    assert [(b.key, b.sentences) for b in result.curves["source"]] == [(2, 1), (3, 1), (5, 1), (6, 1)]
    assert [(b.key, b.sentences) for b in result.curves["reference"]] == [(4, 2), (5, 1), (6, 1)]
    assert [(b.key, b.sentences) for b in result.curves["both"]] == [(4, 1), (5, 2), (6, 1)]
    four = corpus_bleu([HYPOTHESES[1], HYPOTHESES[3]], [[REFERENCES[1], REFERENCES[3]]])
    assert result.curves["reference"][0].bleu == pytest.approx(four.score)


def test_a_window_over_everything_is_corpus_bleu() -> None:
    result = by_length(SOURCES, [REFERENCES], HYPOTHESES, window=40)
    whole = corpus_bleu(HYPOTHESES, [REFERENCES])
    assert all(b.bleu == pytest.approx(whole.score) and b.sentences == 4 for curve in result.curves.values() for b in curve)
    assert result.bleu == whole


def test_a_window_of_ten_by_hand() -> None:
    """Key 9 holds the lengths 4 to 13."""
    statistics = SentenceStatistics(["a"] * 14, [["a"] * 14])
    buckets = {b.key: b for b in sliding(list(range(1, 15)), statistics, window=10)}
    assert (buckets[9].first, buckets[9].last, buckets[9].sentences) == (4, 13, 10)
    assert (buckets[1].first, buckets[1].sentences) == (-4, 5)


def test_small_groups_are_left_out() -> None:
    result = by_length(SOURCES, [REFERENCES], HYPOTHESES, window=1, least=2)
    assert [b.key for b in result.curves["reference"]] == [4] and not result.curves["source"]


def test_tsv() -> None:
    lines = list(to_tsv(by_length(SOURCES, [REFERENCES], HYPOTHESES, window=1).curves))
    assert lines[0] == "by\tlength\tfirst\tlast\tsentences\tbleu\tlength_ratio"
    assert lines[1] == "source\t2\t2\t2\t1\t100.0000\t1.0000"


def test_figure(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from nmt.analysis import plots

    result = by_length(SOURCES, [REFERENCES], HYPOTHESES, window=3)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        plots.by_length(result.curves, "title & <odd>", [tmp_path / folder / "x.svg", tmp_path / folder / "x.png"])
    assert (tmp_path / "a" / "x.svg").read_bytes() == (tmp_path / "b" / "x.svg").read_bytes()
    from xml.etree import ElementTree

    text = " ".join(ElementTree.parse(tmp_path / "a" / "x.svg").getroot().itertext())
    assert "title & <odd>" in text and "source length" in text and "the longer of both" in text
    assert (tmp_path / "a" / "x.png").read_bytes().startswith(b"\x89PNG")
