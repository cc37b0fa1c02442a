"""A report on the columns that smt-score-table adds: vocabulary coverage, the new score against the direct
translation probability, and the best targets of some phrases (van Merriënboer 2018, table 4.2).

coverage.tsv        number of pairs. If a feature is a network, also (for the first such network): number of
                    pairs with an unknown word, and words and unknown words of each side that it reads
scatter-NAME.tsv    sampled pairs: source, target, count, ln p(target | source) of the table, ln of the new
                    score
scatter-NAME.png    the same as a figure
phrases-NAME.tsv    the best targets of frequent and of rare long source phrases, by the table's score and by
                    the new one
"""

import heapq
import random
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.analysis import plots
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from nmt.io import files
from smt_bridge.features.base import PairFeature

POINTS = 5000  # pairs in the scatter plot
SOURCES = 10  # number of frequent source phrases listed, and of rare ones
LONG = 3  # a long source phrase has at least this many words
BEST = 3  # number of targets listed for each source phrase

ScoredPair = tuple[PhrasePair, NDArray[np.float64]]  # a line of the table, and its new values: (features,)
Ranked = tuple[tuple[int, int], list[ScoredPair]]  # in a heap: (count, order), options of a source


@dataclass
class Coverage:
    """Running words of one side, and how many of them are unknown to a network."""

    words: int = 0
    unknown: int = 0

    def add(self, words: list[str], vocabulary: Container[str]) -> int:
        """Count the words of a phrase; returns how many are unknown."""
        unknown = sum(word not in vocabulary for word in words)
        self.words += len(words)
        self.unknown += unknown
        return unknown

    def rows(self, side: str) -> list[tuple[str, str]]:
        """Names and values of the rows of one side in coverage.tsv. `side`: its name, source or target."""
        share = 1 - self.unknown / max(1, self.words)
        return [
            (f"{side} words", f"{self.words}"),
            (f"unknown {side} words", f"{self.unknown}"),
            (f"{side} coverage", f"{share:.4f}"),
        ]


class TableReport:
    """Builds the report chunk by chunk while the table is written; memory does not grow with the table.
    UserError if the folder cannot be written, or if the plots package is missing."""

    def __init__(self, directory: str, names: Sequence[str], features: Sequence[PairFeature]) -> None:
        """Create the folder. `names` label the features in file names and plots."""
        self.directory = Path(directory)
        plots.pyplot()  # fails now if the package is missing, not after the work
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise files.cannot_write(directory, error) from error
        self.names = names
        self.readers = next(filter(None, (feature.readers() for feature in features)), {})
        self.sides = {side: Coverage() for side in self.readers}
        self.pairs = self.unknown_pairs = self.sources = 0
        self.random = random.Random(1)
        self.points: list[ScoredPair] = []
        self.frequent: list[Ranked] = []
        self.rare: list[Ranked] = []

    def add(self, chunk: Sequence[PhrasePair], values: NDArray[np.float64]) -> None:
        """Add a chunk of the table and its new scores, natural logarithms: (pairs, features)."""
        for pair, row in zip(chunk, values, strict=True):
            self.pairs += 1
            self.unknown_pairs += self.count_words(pair)
            if len(self.points) < POINTS:
                self.points.append((pair, row))
            elif (index := self.random.randrange(self.pairs)) < POINTS:  # reservoir sampling
                self.points[index] = (pair, row)
        for _, group in groupby(zip(chunk, values, strict=True), key=lambda item: item[0].source):
            self.remember(list(group))

    def count_words(self, pair: PhrasePair) -> bool:
        """Count the words of a pair as the first network reads it; returns whether one is unknown to it."""
        phrases = {"source": pair.source, "target": pair.target}
        unknown = [
            self.sides[side].add(reader.cut(phrase_table.words(phrases[side])), reader.vocabulary)
            for side, reader in self.readers.items()
        ]
        return sum(unknown) > 0

    def remember(self, options: list[ScoredPair]) -> None:
        """Remember the options of a source phrase for the list of best targets, if the phrase is long, has
        more than BEST options, and is among the most frequent or the rarest such phrases so far."""
        first = options[0][0]
        if len(first.source.split()) < LONG or len(options) <= BEST:
            return
        count = phrase_table.source_count(first)
        self.sources += 1
        for heap, rank in ((self.frequent, count), (self.rare, -count)):
            heapq.heappush(heap, ((rank, -self.sources), options))
            if len(heap) > SOURCES:
                heapq.heappop(heap)

    def write(self) -> None:
        rows = [("pairs", f"{self.pairs}")]
        if self.readers:
            rows.append(("pairs with an unknown word", f"{self.unknown_pairs}"))
            rows += [row for side, coverage in self.sides.items() for row in coverage.rows(side)]
        files.write_text(self.directory / "coverage.tsv", ["\t".join(row) for row in rows])
        for feature, name in enumerate(self.names):
            self.write_scatter(feature, name)
            self.write_phrases(feature, name)

    def write_scatter(self, feature: int, name: str) -> None:
        """Write scatter-NAME.tsv and scatter-NAME.png: for the sampled pairs, ln p(target | source) of the
        table and the new score, also a natural logarithm."""
        points = sorted(
            ((pair, phrase_table.direct(pair), float(row[feature])) for pair, row in self.points),
            key=lambda point: point[0].raw,
        )
        lines = [
            f"{text(pair.source)}\t{text(pair.target)}\t{phrase_table.joint_count(pair)}\t{x:.6g}\t{y:.6g}"
            for pair, x, y in points
        ]
        files.write_text(
            self.directory / f"scatter-{name}.tsv", ["source\ttarget\tcount\tln_direct\tln_score", *lines]
        )
        plots.scatter(
            [self.directory / f"scatter-{name}.png"],
            [x for _, x, _ in points],
            [y for _, _, y in points],
            "ln p(target | source) of the table",
            f"ln {name}",
            name,
        )

    def write_phrases(self, feature: int, name: str) -> None:
        """Write phrases-NAME.tsv: the best targets of the remembered sources, by the table's score and by the
        new one."""
        orders: list[tuple[str, Callable[[ScoredPair], float]]] = [
            ("table", lambda option: phrase_table.direct(option[0])),
            (name, lambda option: float(option[1][feature])),
        ]
        lines = ["kind\tsource\tcount\tby\trank\ttarget\tln_score"]
        for kind, heap in (("frequent", self.frequent), ("rare", self.rare)):
            for _, options in sorted(heap, key=lambda item: item[0], reverse=True):
                first = options[0][0]
                start = f"{kind}\t{text(first.source)}\t{phrase_table.source_count(first)}"
                for by, value in orders:
                    best = sorted(options, key=value, reverse=True)[:BEST]
                    lines += [
                        f"{start}\t{by}\t{rank}\t{text(option[0].target)}\t{value(option):.6g}"
                        for rank, option in enumerate(best, 1)
                    ]
        files.write_text(self.directory / f"phrases-{name}.tsv", lines)


def text(phrase: bytes) -> str:
    """Decode a phrase for a TSV field."""
    return phrase.decode("utf-8").replace("\t", " ")
