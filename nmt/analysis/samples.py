"""Translations to read (Table 6.2): long and short sentences without unknown words, with their reference, as
each system translates them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nmt.analysis.lengths import lengths
from nmt.analysis.systems import System
from nmt.analysis.table import Table, one_field
from nmt.analysis.unknown import unknown_words
from nmt.settings import number
from nmt.text.vocab import Vocab


@dataclass
class SampleConfig:
    """Which sentences are shown."""

    count: int = number(5, least=1, help="sentences of each kind")
    long: int = number(30, least=1, help="long: more than N words on both sides")
    short: int = number(10, least=1, help="short: fewer than N words on both sides")
    seed: int = number(1, least=0, help="random seed of the choice")


@dataclass
class Sample:
    """One sentence of the test set, as every system translates it."""

    kind: str  # long | short
    line: int  # from 1
    words: int  # of the source
    source: str
    reference: str
    hypotheses: dict[str, str]  # by system
    chrf: dict[str, float]  # by system, 0 to 100, of this sentence alone


def sample_sentences(
    systems: Sequence[System], vocabs: tuple[Vocab, Vocab] | None, config: SampleConfig
) -> list[Sample]:
    """Random sentences of each kind, in the order of the text; the same `config.seed` draws the same ones.

    With vocabularies (source, target), only sentences without an unknown word.
    """
    test = systems[0].test
    by = lengths(test)
    shorter, longer = np.minimum(by["source"], by["reference"]), np.array(by["both"])
    usable = shorter > 0
    if vocabs:
        usable &= np.array(unknown_words(test, *vocabs)["both"]) == 0
    rng, found = np.random.default_rng(config.seed), []
    for kind, mask in (("long", shorter > config.long), ("short", longer < config.short)):
        rows = np.flatnonzero(usable & mask)
        for row in sorted(rng.permutation(rows)[: config.count].tolist()):
            alone = np.arange(len(usable)) == row
            found.append(
                Sample(
                    kind=kind,
                    line=row + 1,
                    words=by["source"][row],
                    source=test.sources[row],
                    reference=test.references[0][row],
                    hypotheses={system.name: system.hypotheses[row] for system in systems},
                    chrf={system.name: system.chrf(alone).score for system in systems},
                )
            )
    return found


def table(found: Sequence[Sample]) -> Table:
    """For each sample the source, the reference, and each system's translation with its chrF."""
    columns = {"kind": "", "line": "", "words": "", "of": "", "chrf": ".2f", "text": ""}
    return Table(columns, (row for sample in found for row in rows_of(sample)))


def rows_of(sample: Sample) -> Iterator[list[object]]:
    head = [sample.kind, sample.line, sample.words]
    yield [*head, "source", None, one_field(sample.source)]
    yield [*head, "reference", None, one_field(sample.reference)]
    for name, text in sample.hypotheses.items():
        yield [*head, name, sample.chrf[name], one_field(text)]
