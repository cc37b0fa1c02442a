"""The lines of the phrase table and the reordering table, and of the word translation probabilities."""

from collections.abc import Iterable
from contextlib import ExitStack
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nmt import files
from smt_bridge.extraction import counts, scores
from smt_bridge.extraction.config import ExtractConfig
from smt_bridge.extraction.corpus import Survey
from smt_bridge.extraction.counts import Int64s, PhrasePairs, WordTable
from smt_bridge.extraction.instances import packing_of, unpack


class TableLines:
    """What the lines of pairs need to know of the whole corpus."""

    def __init__(
        self, words: Survey, config: ExtractConfig, lexicon: WordTable, totals: scores.Totals
    ) -> None:
        """`lexicon`: finished."""
        self.words, self.config, self.lexicon, self.totals = words, config, lexicon, totals
        self.source = packing_of(words.source, config.max_length)
        self.target = packing_of(words.target, config.max_length)

    def of(
        self, pairs: PhrasePairs, of_target: Int64s, target_partners: Int64s
    ) -> tuple[list[str], list[str]]:
        """The lines of a part in both tables. `of_target`: how often each target was extracted, with
        `target_partners` different sources: (P,), (P,)"""
        width = self.source.columns
        starts, sizes = counts.groups(pairs.keys, width)
        of_source = np.repeat(np.add.reduceat(pairs.count, starts), sizes)
        source_partners = np.repeat(sizes, sizes)
        numbers = scores.Counts(
            joint=pairs.count,
            target=of_target,
            source=of_source,
            target_partners=target_partners,
            source_partners=source_partners,
        )
        inverse, direct = scores.phi(numbers, self.totals, self.config.smoothing)
        longest, S, T = self.config.max_length, self.words.source, self.words.target
        source = unpack(pairs.keys[:, :width], self.source, longest)
        target = unpack(pairs.keys[:, width:], self.target, longest)
        word_source, word_target = np.where(source == S.end, 0, source), np.where(target == T.end, 0, target)
        lexicon = self.lexicon
        lex_direct = counts.lexical(
            lexicon.keys, lexicon.direct, lexicon.targets, word_source, word_target, pairs.direct, True
        )
        lex_inverse = counts.lexical(
            lexicon.keys, lexicon.inverse, lexicon.targets, word_source, word_target, pairs.inverse, False
        )
        sources = [
            text
            for text, size in zip(phrases(word_source[starts], S.words), sizes.tolist(), strict=True)
            for _ in range(size)
        ]
        heads = [f"{a} ||| {b} ||| " for a, b in zip(sources, phrases(word_target, T.words), strict=True)]
        columns = [
            array.tolist()
            for array in (inverse, lex_inverse, direct, lex_direct, of_target, of_source, pairs.count)
        ]
        shapes = [points_of(square) for square in pairs.direct.tolist()]
        table = [
            f"{head}{a:.6g} {b:.6g} {c:.6g} {d:.6g} ||| {shape} ||| {t} {s} {j} ||| |||"
            for head, shape, a, b, c, d, t, s, j in zip(heads, shapes, *columns, strict=True)
        ]
        known: dict[tuple[int, ...], str] = {}
        probabilities = scores.orientation_scores(pairs.ways)
        reordering = []
        for row, (head, way) in enumerate(zip(heads, map(tuple, pairs.ways.tolist()), strict=True)):
            text = known.get(way)
            if text is None:
                text = known[way] = " ".join(f"{value:.6g}" for value in probabilities[row])
            reordering.append(head + text)
        return table, reordering


def write_tables(table: str, reordering: str | None, lines: Iterable[tuple[list[str], list[str]]]) -> None:
    """Write the lines of both tables, whole or not at all."""
    with ExitStack() as stack:
        first = stack.enter_context(files.Writing(table))
        second = stack.enter_context(files.Writing(reordering)) if reordering else None
        for rows, others in lines:
            for at in range(0, len(rows), 4096):
                first.write("\n".join(rows[at : at + 4096]) + "\n")
                if second:
                    second.write("\n".join(others[at : at + 4096]) + "\n")


def write_lexical(stem: str, words: Survey, lexicon: WordTable) -> None:
    """Write word translation probabilities as Moses does: `target source p(target | source)`, and the
    inverse."""
    source, target = lexicon.keys // lexicon.targets, lexicon.keys % lexicon.targets
    S, T = ([b"NULL", *side.words[1:]] for side in (words.source, words.target))
    texts = [(S[s].decode(), T[t].decode()) for s, t in zip(source.tolist(), target.tolist(), strict=True)]
    files.write_text(
        f"{stem}.f2e",
        (f"{t} {s} {p:.7f}" for (s, t), p in zip(texts, lexicon.direct.tolist(), strict=True)),
    )
    files.write_text(
        f"{stem}.e2f",
        (f"{s} {t} {p:.7f}" for (s, t), p in zip(texts, lexicon.inverse.tolist(), strict=True)),
    )


def phrases(ids: NDArray[np.int32], words: list[bytes]) -> list[str]:
    """Phrases as text, from rows of word numbers that are 0 from the end on."""
    texts = [word.decode() for word in words]
    lengths = (ids > 0).sum(1).tolist()
    return [
        " ".join([texts[word] for word in row[:length]])
        for row, length in zip(ids.tolist(), lengths, strict=True)
    ]


@lru_cache(1 << 20)
def points_of(square: int) -> str:
    """The points 0-0 1-2 of an alignment square, by target word, as Moses writes them."""
    return " ".join(f"{i}-{j}" for j in range(8) for i in range(8) if square >> (8 * i + j) & 1)
