"""Translations to read (Table 6.2): long and short sentences without unknown words, beside their reference,
system by system."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nmt import files
from nmt.analysis.by_length import lengths
from nmt.analysis.systems import System
from nmt.analysis.unknown import counts
from nmt.data.vocab import Vocab

LONG, SHORT = 30, 10  # more words, fewer words on both sides


@dataclass
class Sample:
    kind: str  # long | short
    line: int  # from 1
    words: int  # of the source
    source: str
    reference: str
    hypotheses: dict[str, str]
    chrf: dict[str, float]  # of this sentence alone


def samples(
    systems: Sequence[System],
    vocabs: tuple[Vocab, Vocab] | None,
    count: int,
    seed: int = 1,
    long: int = LONG,
    short: int = SHORT,
) -> list[Sample]:
    """`count` sentences of each kind, drawn by `seed`, in the order of the text. With vocabularies only
    sentences without an unknown word."""
    test = systems[0].test
    both = lengths(test)
    least, most = np.minimum(both["source"], both["reference"]), np.array(both["both"])
    usable = least > 0
    if vocabs:
        usable &= np.array(counts(test, *vocabs)["both"]) == 0
    rng, found = np.random.default_rng(seed), []
    for kind, which in (("long", usable & (least > long)), ("short", usable & (most < short))):
        rows = np.flatnonzero(which)
        for row in sorted(rng.permutation(rows)[:count].tolist()):
            alone = np.arange(len(usable)) == row
            chrf = {system.name: system.chrf(alone).score for system in systems}
            texts = {system.name: system.hypotheses[row] for system in systems}
            found.append(
                Sample(
                    kind,
                    row + 1,
                    both["source"][row],
                    test.sources[row],
                    test.references[0][row],
                    texts,
                    chrf,
                )
            )
    return found


def to_tsv(found: Sequence[Sample]) -> Iterator[str]:
    yield "\t".join(["kind", "line", "words", "of", "chrf", "text"])
    for sample in found:
        head = [sample.kind, str(sample.line), str(sample.words)]
        yield "\t".join([*head, "source", "", one_field(sample.source)])
        yield "\t".join([*head, "reference", "", one_field(sample.reference)])
        for name, text in sample.hypotheses.items():
            yield "\t".join([*head, name, f"{sample.chrf[name]:.2f}", one_field(text)])


def one_field(text: str) -> str:
    """A line without tabs, so that it stays one column."""
    return " ".join(files.split_words(text))
