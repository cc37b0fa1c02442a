"""Groups of sentences of similar length, or with a similar number of hard words, each group scored by itself:
the curves of Fig. 6.4."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.systems import System, TestSet
from nmt.analysis.table import Table, fields_of
from nmt.text.scripts import line_length

LEAST = 20  # sentences that a point of a curve needs: BLEU of fewer says little


@dataclass
class Bucket:
    """The sentences with first <= key <= last. A figure draws them at `key`."""

    key: int
    first: int
    last: int
    sentences: int
    bleu: float  # 0 to 100
    ratio: float  # words of the hypotheses over words of the references, as BLEU counts them
    chrf: float  # 0 to 100


def score_bucket(system: System, mask: NDArray[np.bool_], key: int, first: int, last: int) -> Bucket:
    """The scores of the sentences where `mask` is true."""
    return Bucket(
        key=key,
        first=first,
        last=last,
        sentences=int(mask.sum()),
        bleu=system.bleu(mask).score,
        ratio=system.ratio(mask),
        chrf=system.chrf(mask).score,
    )


def sliding(keys: Sequence[int], system: System, window: int, least: int = 1) -> list[Bucket]:
    """One bucket for each key from the smallest to the largest: `window` neighboring keys, of which
    key - window // 2 is the first.

    Buckets of fewer than `least` sentences are left out; with window 1 each key stands alone.
    """
    values = np.asarray(keys)
    buckets: list[Bucket] = []
    if not len(values):
        return buckets
    for key in range(int(values.min()), int(values.max()) + 1):
        first = key - window // 2
        last = first + window - 1
        mask = (values >= first) & (values <= last)
        if int(mask.sum()) >= max(1, least):
            buckets.append(score_bucket(system, mask, key, first, last))
    return buckets


def at_most(keys: Sequence[int], system: System, least: int = 1) -> list[Bucket]:
    """One bucket for each key from 0 to the largest: all sentences up to it (cumulative, as in Fig. 6.4c)."""
    values = np.asarray(keys)
    buckets = []
    for key in range(int(values.max(initial=-1)) + 1):
        mask = values <= key
        if int(mask.sum()) >= max(1, least):
            buckets.append(score_bucket(system, mask, key, 0, key))
    return buckets


Curves = dict[str, dict[str, list[Bucket]]]  # system -> source, reference, both -> buckets


def by_side(source: list[int], reference: list[int]) -> dict[str, list[int]]:
    """Counts of the source sentences, of the reference sentences, and the larger of the two.

    Papers plot "both" without defining it: we take the larger.
    """
    return {"source": source, "reference": reference, "both": list(map(max, source, reference))}


def curves_of(
    systems: Sequence[System],
    keys: Mapping[str, Sequence[int]],
    group: Callable[[Sequence[int], System], list[Bucket]],
) -> Curves:
    """The buckets of each system by each kind of key."""
    return {system.name: {side: group(values, system) for side, values in keys.items()} for system in systems}


def by_count(systems: Sequence[System], counts: Mapping[str, Sequence[int]], least: int) -> Curves:
    """The scores of all sentences with a count of at most 0, 1, 2 ...; `counts` has one for each sentence, by
    source, reference and both."""
    return curves_of(systems, counts, lambda values, system: at_most(values, system, least))


def curve_table(curves: Curves, key: str) -> Table:
    """One row per bucket; `key` names the column of the buckets' keys."""
    columns = {"by": "", key: "", "first": "", "last": "", "sentences": ""}
    columns |= {"bleu": ".4f", "length_ratio": ".4f", "chrf": ".4f", "system": ""}
    return Table(
        columns,
        [
            [side, *values, system]
            for system, sides in curves.items()
            for side, buckets in sides.items()
            for values in fields_of(buckets)
        ],
    )


WINDOW = 10  # lengths, as in section 6.5.1


def lengths(test: TestSet) -> dict[str, list[int]]:
    """Words, as `line_length` counts them, of the source, of the first reference, and of the longer of the
    two."""

    def words(lines: Sequence[str]) -> list[int]:
        return [line_length(line) for line in lines]

    return by_side(words(test.sources), words(test.references[0]))


def by_length(systems: Sequence[System], window: int = WINDOW, least: int = LEAST) -> Curves:
    """BLEU and chrF by sentence length: system -> source, reference, both -> buckets of `window` lengths.

    Buckets of fewer than `least` sentences are left out. `systems` share one test set.
    """
    return curves_of(
        systems,
        lengths(systems[0].test),
        lambda values, system: sliding(values, system, window, least),
    )
