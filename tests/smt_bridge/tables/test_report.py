"""The report on the new columns of a table."""

from pathlib import Path

import numpy as np

from nmt.formats import phrase_table
from smt_bridge.features.base import PairFeature, SideReader, Values, WordPairs
from smt_bridge.tables.report import TableReport


class Network(PairFeature):
    """A feature that reads the target side and knows one word."""

    def readers(self) -> dict[str, SideReader]:
        return {"target": SideReader(cut=list, vocabulary={"x"})}

    def score(self, pairs: WordPairs) -> Values:
        return np.zeros(len(pairs))

    def identity(self) -> str:
        return ""


def test_report_of_a_language_model(tmp_path: Path) -> None:
    """It reads the target side only: coverage is that side's. Of several networks the first one's."""
    pairs = [
        phrase_table.parse(b"a b ||| x y ||| 1 1 1", "t:1"),
        phrase_table.parse(b"a c ||| x ||| 1 1 1", "t:2"),
    ]
    report = TableReport(str(tmp_path / "r"), ["NeuralLM0"], [Network()])
    report.add(pairs, np.zeros((2, 1)))
    report.write()
    rows = dict(line.split("\t") for line in (tmp_path / "r" / "coverage.tsv").read_text().split("\n")[:-1])
    assert rows == {
        "pairs": "2",
        "pairs with an unknown word": "1",
        "target words": "3",
        "unknown target words": "1",
        "target coverage": "0.6667",
    }
    assert (tmp_path / "r" / "scatter-NeuralLM0.tsv").exists()
