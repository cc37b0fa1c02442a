"""The text of several corpora, without the lines that their filters drop."""

import logging
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import compress

import numpy as np

from nmt import files
from nmt.data.corpora import CorpusConfig, FilterConfig
from nmt.data.duplicates import Digests
from nmt.errors import DataError
from nmt.text.clean import CleanConfig, reason_against

log = logging.getLogger(__name__)


class ListedText:
    """The pairs of lines of corpora, one corpus after the other. A filter is applied once; what it keeps is a
    byte a line in memory."""

    def __init__(self, corpora: Sequence[CorpusConfig]) -> None:
        self.corpora = corpora

    @cached_property
    def kept(self) -> list[bytearray | None]:
        """Of each corpus: for each line, is it used? None: all are. DataError where none is."""
        return [kept_lines(corpus) if corpus.filters.active else None for corpus in self.corpora]

    @cached_property
    def sizes(self) -> list[int]:
        """The number of lines of each corpus that are used."""
        return [
            files.number_of_lines(corpus.source) if kept is None else kept.count(1)
            for corpus, kept in zip(self.corpora, self.kept, strict=True)
        ]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The lines of both sides."""
        for corpus, kept in zip(self.corpora, self.kept, strict=True):
            rows = files.parallel(corpus.source, corpus.target)
            yield from rows if kept is None else compress(rows, kept)


def kept_lines(corpus: CorpusConfig) -> bytearray:
    """1 for each line that the filters of a corpus keep, else 0; what they drop is logged."""
    config, kept, reasons = corpus.filters, bytearray(), Counter[str]()
    limits = clean_config(config)
    seen = Digests() if config.drop_duplicates else None
    for source, target in files.parallel(corpus.source, corpus.target):
        reason = reason_against(source, target, limits)
        if not reason and config.drop_copies and source.strip(" \t") == target.strip(" \t"):
            reason = "copy"
        if reason:
            reasons[reason] += 1
        if seen:
            seen.add(f"{source}\n{target}")
        kept.append(not reason)
    for rows in seen.repeated() if seen else ():
        flags = np.frombuffer(kept, np.uint8)
        reasons["duplicate"] += int(flags[rows].sum())
        flags[rows] = 0
    told = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()) if count)
    log.info("corpus %s: %s lines, dropped: %s", corpus.title, f"{len(kept):,}", told or "none")
    if not any(kept):
        raise DataError(f"{corpus.source}: the filters of data.corpora drop every line ({told})")
    return kept


def clean_config(config: FilterConfig) -> CleanConfig:
    """The limits of a filter as nmt-clean has them."""
    return CleanConfig(
        min_length=config.min_length,
        max_length=config.max_length or sys.maxsize,
        ratio=config.max_ratio,
        keep_duplicates=True,
    )
