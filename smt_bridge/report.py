"""What a new column says, for people: coverage, scatter against the direct probability, best phrases by each
(Table 4.2).

coverage.tsv        pairs; of the first network among the features: pairs with an unknown word, words and
unknown words of each side it reads scatter-NAME.tsv    source, target, count, ln p(target | source) of the
table, ln of the new score; and scatter-NAME.png phrases-NAME.tsv    for long frequent and long rare sources:
the best targets by the table and by the new score
"""

import heapq
import random
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt import files, phrase_table
from nmt.analysis import plots
from nmt.phrase_table import PhrasePair
from smt_bridge.features.base import Reader
from smt_bridge.features.spec import Spec

POINTS = 5000  # of the scatter
SOURCES = 10  # frequent ones, and as many rare ones
LONG = 3  # words of a long source phrase
BEST = 3  # targets shown


@dataclass
class Coverage:
    words: int = 0
    unknown: int = 0

    def add(self, words: list[str], known: Container[str]) -> int:
        unknown = sum(word not in known for word in words)
        self.words += len(words)
        self.unknown += unknown
        return unknown


class Report:
    """Fed with chunks in passing; memory does not grow with the table."""

    def __init__(self, directory: str, specs: Sequence[Spec], features: Sequence[Any]) -> None:
        self.directory = Path(directory)
        plots.pyplot()  # reported before the work, not after it
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise files.cannot_write(directory, error) from error
        self.specs = specs
        self.readers: dict[str, Reader] = next(
            (feature.readers() for feature in features if hasattr(feature, "readers")), {}
        )
        self.sides = {side: Coverage() for side in self.readers}
        self.pairs = self.unknown_pairs = self.sources = 0
        self.random = random.Random(1)
        self.points: list[tuple[PhrasePair, NDArray[np.float64]]] = []
        self.frequent: list[Any] = []  # heaps of (count, order, options)
        self.rare: list[Any] = []

    def add(self, piece: Sequence[PhrasePair], values: NDArray[np.float64]) -> None:
        for pair, row in zip(piece, values, strict=True):
            self.pairs += 1
            self.unknown_pairs += self.cover(pair)
            if len(self.points) < POINTS:
                self.points.append((pair, row))
            elif (
                place := self.random.randrange(self.pairs)
            ) < POINTS:  # reservoir: every pair has the same chance
                self.points[place] = (pair, row)
        for _, group in groupby(zip(piece, values, strict=True), key=lambda item: item[0].source):
            self.remember(list(group))

    def cover(self, pair: PhrasePair) -> bool:
        """Count the words of the sides that the first network reads. Has the pair one that it does not
        know?"""
        phrases = {"source": pair.source, "target": pair.target}
        return (
            sum(
                self.sides[side].add(reader.cut(phrase_table.words(phrases[side])), reader.known)
                for side, reader in self.readers.items()
            )
            > 0
        )

    def remember(self, options: list[tuple[PhrasePair, NDArray[np.float64]]]) -> None:
        """Keep the options of a source if it is long and among the most frequent, or the rarest with a
        choice."""
        first = options[0][0]
        if len(first.source.split()) < LONG or len(options) <= BEST:
            return
        count = phrase_table.source_count(first)
        self.sources += 1
        keep(self.frequent, (count, -self.sources), options)
        keep(self.rare, (-count, -self.sources), options)

    def write(self) -> None:
        rows = [["pairs", f"{self.pairs}"]]
        if self.readers:
            rows.append(["pairs with an unknown word", f"{self.unknown_pairs}"])
            for side, coverage in self.sides.items():
                known = 1 - coverage.unknown / max(1, coverage.words)
                rows += [
                    [f"{side} words", f"{coverage.words}"],
                    [f"unknown {side} words", f"{coverage.unknown}"],
                    [f"{side} coverage", f"{known:.4f}"],
                ]
        files.write_text(self.directory / "coverage.tsv", ["\t".join(row) for row in rows])
        for feature, spec in enumerate(self.specs):
            self.write_scatter(feature, spec.name)
            self.write_phrases(feature, spec.name)

    def write_scatter(self, feature: int, name: str) -> None:
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
        figure = self.directory / f"scatter-{name}.png"
        plots.scatter(
            [figure],
            [x for _, x, _ in points],
            [y for _, _, y in points],
            "ln p(target | source) of the table",
            f"ln {name}",
            name,
        )

    def write_phrases(self, feature: int, name: str) -> None:
        lines = ["kind\tsource\tcount\tby\trank\ttarget\tln_score"]
        for kind, heap in (("frequent", self.frequent), ("rare", self.rare)):
            for _, options in sorted(heap, key=lambda item: item[0], reverse=True):
                source = options[0][0]
                for by, value in (
                    ("table", lambda option: phrase_table.direct(option[0])),
                    (name, lambda option: float(option[1][feature])),
                ):
                    for rank, option in enumerate(sorted(options, key=value, reverse=True)[:BEST], 1):
                        lines.append(
                            f"{kind}\t{text(source.source)}\t{phrase_table.source_count(source)}\t{by}\t{rank}\t{text(option[0].target)}\t{value(option):.6g}"
                        )
        files.write_text(self.directory / f"phrases-{name}.tsv", lines)


def keep(heap: list[Any], rank: tuple[int, int], options: Any) -> None:
    if len(heap) < SOURCES:
        heapq.heappush(heap, (rank, options))
    elif rank > heap[0][0]:
        heapq.heapreplace(heap, (rank, options))


def text(phrase: bytes) -> str:
    return phrase.decode("utf-8").replace("\t", " ")
