"""fast_align's model of one direction, kept to align new text without training again.

A kept model is a folder of arrays (nmt/io/mapped.py). A pair of words that is not in it has the probability
of `UNSEEN`, as in fast_align's own alignment with a given model (Dyer et al. 2013); a source word that is not
in it translates into each of the T target words, and into a new one, with probability 1 / T.
"""

import logging
import math
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nmt.compute.compiled import njit_ieee
from nmt.io import mapped
from smt_bridge.extraction.alignment import DIRECTIONS, align_alignable
from smt_bridge.extraction.fast_align import (
    EMPTY,
    NULL,
    Floats,
    Ids,
    LexicalTable,
    Logs,
    Offsets,
    PackedCorpus,
    best_links,
    diagonal,
    make_links,
    normalizer,
    probability,
)
from smt_bridge.extraction.packed_corpus import PackedLinks, PackedText

log = logging.getLogger(__name__)

KNOWN = 0.9  # share of known words below which the tokenization is doubtful
UNSEEN = 1e-9  # probability of a pair of words that did not occur together; less likely ones are not kept


class KeptModel(NamedTuple):
    """p(target word | source word) = exp(digamma(exp(logs)) - totals[source word]), of S source and T target
    words in the order of the text that the model was trained on."""

    source_words: list[str]
    target_words: list[str]
    starts: Offsets  # (T + 1,) of each target word's entries
    sources: Ids  # (E,) source word of each entry, ascending within a target word
    logs: Logs  # (E,) natural logarithm of expected count + prior
    totals: Floats  # (S,) digamma of the sum of these over a source word's entries
    null: Floats  # (T,) p(target word | no source word)
    tension: Floats  # (1,)

    def is_sound(self) -> bool:
        """Whether sizes and types of arrays agree, indices are within bounds, and both sides have words."""
        source_words, target_words = len(self.source_words), len(self.target_words)
        shapes = [array.shape for array in (self.starts, self.totals, self.null, self.tension)]
        entries = self.sources.shape
        if shapes != [(target_words + 1,), (source_words,), (target_words,), (1,)] or len(entries) != 1:
            return False
        bounds = self.starts[0] == 0 and self.starts[-1] == entries[0] and (np.diff(self.starts) >= 0).all()
        inside = ((self.sources >= 0) & (self.sources < source_words)).all()
        types = [array.dtype for array in self[2:]]
        return bool(
            bounds
            and inside
            and self.logs.shape == entries
            and source_words
            and target_words
            and types == [np.int64, np.int32, np.float32, *[np.float64] * 3]
        )


def train(sources: PackedText, targets: PackedText, folder: Path) -> PackedLinks:
    """Train and align like `best_links`, and write the model to `folder`, which must exist and be empty.
    UserError if that fails."""

    def write(corpus: PackedCorpus, lexicon: LexicalTable, tension: float) -> None:
        members, likely, counts = entries(corpus, lexicon, len(sources.words))
        order = np.lexsort((members, np.repeat(np.arange(len(counts)), counts)))
        model = KeptModel(
            source_words=list(sources.words),
            target_words=list(targets.words),
            starts=np.append(0, np.cumsum(counts)),
            sources=members[order],
            logs=lexicon.logs[likely][order],
            totals=lexicon.totals,
            null=lexicon.null,
            tension=np.array([tension]),
        )
        mapped.write_record(folder, model, [])

    return best_links(sources, targets, write)


def load(folder: Path) -> KeptModel:
    """Map a kept model into memory. DataError if it is missing or damaged."""
    return mapped.load_record(folder, KeptModel, "smt-train", verify=True)


def align_both_directions(
    models: Path, sources: PackedText, targets: PackedText
) -> tuple[PackedLinks, PackedLinks]:
    """Align new text with the models of both directions, as alignment.align_both_directions does. Warns if
    they know few of its words. DataError for damaged models."""
    forward, reverse = (load(models / name) for name in DIRECTIONS)
    sides = (forward.source_words, sources, "source"), (forward.target_words, targets, "target")
    for words, text, side in sides:
        share = np.mean(token_ids(words, text) != EMPTY) if len(text.ids) else 1.0
        if share < KNOWN:
            log.warning(
                "the model knows %.0f%% of the words on the %s side; is the text tokenized and cased like "
                "that of the model?", 100 * share, side,
            )  # fmt: skip
    links = align_alignable(partial(align, forward), sources, targets)
    return links, align_alignable(partial(align, reverse), targets, sources).swap()


def align(model: KeptModel, sources: PackedText, targets: PackedText) -> PackedLinks:
    """Align sentence pairs without empty sides: each target word is linked to its best source word, if that
    is more likely than none."""
    best = np.full(len(targets.ids), EMPTY, np.int32)
    find_best(
        token_ids(model.source_words, sources), token_ids(model.target_words, targets),
        sources.offsets, targets.offsets, model.starts, model.sources, model.logs, model.totals, model.null,
        float(model.tension[0]), best,
    )  # fmt: skip
    return make_links(best, targets.offsets)


def token_ids(words: list[str], text: PackedText) -> Ids:
    """The ids in `words` of all N tokens of a text, (N,); EMPTY for a token that is not in `words`."""
    id_by_word = {word: number for number, word in enumerate(words)}
    vocab_ids = np.array([id_by_word.get(word, EMPTY) for word in text.words], np.int32)
    return vocab_ids[text.ids]


@njit_ieee
def entries(corpus: PackedCorpus, lexicon: LexicalTable, rows: int) -> tuple[Ids, Offsets, Offsets]:
    """The entries of a trained table that are more likely than UNSEEN: their source words and indices, and
    how many each target word has. `rows`: number of source words."""
    # The operating system allocates only the part of these two that is written, which is small.
    members = np.empty(len(lexicon.logs), np.int32)
    likely = np.empty(len(lexicon.logs), np.int64)
    counts = np.zeros(len(corpus.first) - 1, np.int64)
    size = 0
    seen = np.full(rows, -1, np.int32)
    for word in range(len(corpus.first) - 1):
        entry = lexicon.starts[word]
        for index in range(corpus.first[word], corpus.first[word + 1]):  # the order of `fast_align.expect`
            pair = corpus.pairs[corpus.tokens[index]]
            for position in range(corpus.source_offsets[pair], corpus.source_offsets[pair + 1]):
                source = corpus.sources[position]
                if seen[source] != word:
                    seen[source] = word
                    if probability(lexicon.logs[entry], lexicon.totals[source]) > UNSEEN:
                        members[size], likely[size] = source, entry
                        counts[word] += 1
                        size += 1
                    entry += 1
    return members[:size].copy(), likely[:size].copy(), counts


@njit_ieee
def find_best(
    source_ids: Ids, target_ids: Ids, source_offsets: Offsets, target_offsets: Offsets, starts: Offsets,
    sources: Ids, logs: Logs, totals: Floats, null: Floats, tension: float, best: Ids,
) -> None:  # fmt: skip
    """Write the index, within its sentence, of the best source word of each target token into `best` (N,);
    tokens that are best left unlinked are not changed. `source_ids`, `target_ids`: of all tokens, EMPTY for
    words that the model does not know; `starts` to `tension`: see `KeptModel`."""
    for pair in range(len(source_offsets) - 1):
        source_start, first = source_offsets[pair], target_offsets[pair]
        n, m = source_offsets[pair + 1] - source_start, target_offsets[pair + 1] - first
        for j in range(m):
            target = target_ids[first + j]
            highest = NULL * (UNSEEN if target == EMPTY else null[target])
            z = normalizer(j + 1, m, n, tension) / (1.0 - NULL)
            for i in range(n):
                source = source_ids[source_start + i]
                weight = UNSEEN
                if source == EMPTY:
                    weight = 1.0 / len(null)
                elif target != EMPTY:
                    low, high = starts[target], starts[target + 1]
                    entry = low + np.searchsorted(sources[low:high], source)
                    if entry < high and sources[entry] == source:
                        weight = probability(logs[entry], totals[source])
                weight *= math.exp(diagonal(j + 1, i + 1, m, n) * tension) / z
                if weight > highest:
                    highest, best[first + j] = weight, i
