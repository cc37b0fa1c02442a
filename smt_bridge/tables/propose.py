"""Propose phrase pairs with an encoder-decoder, for source phrases that a table covers thinly.

The network does not score the pairs of the table here, but supplies new ones. Beam search gives a few targets
for each wanted source phrase; those that the table lacks become rows:

    phi          p(source | target) and p(target | source) of the networks; without a network of the other
                 direction, p(target | source) twice. A network with subwords scores the pair anew, as
                 smt-score-table does: the search may have spelled the target in other units
    lexical      weights by the most likely links of the word translation table, which also make the alignment
    count bins   1 in each, if the table has them: the pair was never extracted
    last score   exp(1) in a proposed row, 1 in a row of the table: a feature that counts proposals, for
                 tuning to weigh
    reordering   the mean of the table's rows of that source, or of all rows: a missing row would cost
                 nothing, which is a bonus over every real one

Further columns (RNN, CSLM ...) are left to smt-score-table, which scores new rows like old ones.
"""

import heapq
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.errors import ConfigError, DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from nmt.io import files, numbers
from nmt.runs.run import BeamTranslation
from nmt.search.config import BeamConfig
from nmt.text.tokenize import escape, unescape
from nmt.work.executors import Executor, require_results
from smt_bridge.config import ProposeConfig
from smt_bridge.extraction.scores import count_scores
from smt_bridge.features.base import PairFeature, WordPairs
from smt_bridge.moses.reordering import PROBABILITIES
from smt_bridge.tables.filter import Occurring, same_rows

FLOOR = 1e-7  # of a lexical probability: what the 7 decimals of Moses' tables cannot show
PROPOSED = b"2.718282"  # exp(1): the row counts as one proposal
TABLE = b"1"  # the row is one of the table
COLUMNS = 4  # scores of a row, without count bins, before the last one is added
RARE = 10  # a source that was extracted more often gets the mean of the whole reordering table
BATCH = 256  # source phrases searched at a time

WordProbabilities = Mapping[tuple[bytes, bytes], float]  # (given word, word) -> probability


@dataclass
class KnownPairs:
    """Pairs, counts and reordering scores of an existing table, on which proposals depend."""

    bins: int = 0  # number of count bins, which are the last scores of a row
    targets: dict[bytes, set[bytes]] = field(default_factory=dict)  # of each source
    counts: dict[bytes, int] = field(default_factory=dict)  # how often a source was extracted
    target_counts: dict[bytes, int] = field(default_factory=dict)  # how often a target was
    # target words without escapes -> as the table writes them
    words: dict[str, str] = field(default_factory=dict)
    reordering: dict[bytes, list[NDArray[np.float64]]] = field(default_factory=dict)  # of rare sources
    # of all rows of the reordering table
    mean: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


@dataclass(order=True)
class ProposedRow:
    """A proposed pair: its line of the phrase table, and its row of the reordering table."""

    line: bytes
    reordering: bytes
    source: bytes


def read_table(path: str, reordering: str | None) -> KnownPairs:
    """Read a phrase table and, if `reordering` is its path, the reordering table. DataError for a malformed
    table, or if the tables have different pairs; ConfigError for a phrase table that has other scores than
    Moses' four and count bins."""
    table = KnownPairs()
    pairs = phrase_table.read_strict(path)
    others: Iterator[tuple[PhrasePair, PhrasePair | None]] = (
        same_rows(pairs, phrase_table.read(reordering), reordering)
        if reordering
        else ((pair, None) for pair in pairs)
    )
    total, rows = np.zeros(0), 0
    for rows, (pair, reordering_row) in enumerate(others, 1):
        if rows == 1:  # the rows below have as many scores
            scores = pair.scores.split()
            table.bins = count_bins(scores[COLUMNS:])
            if len(scores) != COLUMNS + table.bins:
                raise ConfigError(
                    f"{path}:1: {len(scores)} scores, expected Moses' four, or these and the count bins of "
                    "smt-train; propose first, then score further columns; instead of --count-feature "
                    "low, train with bins"
                )
        add_pair(table, pair, f"{path}:{rows}")
        if reordering_row is not None:
            values = reordering_scores(reordering_row, f"{reordering}:{rows}", len(total))
            total = total + values if rows > 1 else values
            if table.counts.get(pair.source, 0) <= RARE:
                table.reordering.setdefault(pair.source, []).append(values)
    table.mean = total / max(1, rows)
    return table


def count_bins(scores: Sequence[bytes]) -> int:
    """The number of count bins that the scores after Moses' four are; 0 if they are anything else."""
    bins = count_scores(1, "bins")
    return len(bins) if sorted(scores) == sorted(score.encode() for score in bins) else 0


def add_pair(table: KnownPairs, pair: PhrasePair, location: str) -> None:
    """Add a row of the phrase table. `location`: file:line, for messages. DataError for malformed counts."""
    table.targets.setdefault(pair.source, set()).add(pair.target)
    counts = phrase_table.counts(pair, location)
    if len(counts) > 1:
        table.counts[pair.source] = counts[1]
        table.target_counts[pair.target] = counts[0]
    for word in pair.target.decode("utf-8").split(" "):
        table.words.setdefault(unescape(word), word)


def reordering_scores(row: PhrasePair, location: str, count: int) -> NDArray[np.float64]:
    """The probabilities of a row of the reordering table. `count`: how many the rows before it have, 0 for
    the first row. DataError for another number of them, and for one that no type of model has."""
    words = [word.decode("utf-8", "replace") for word in row.scores.split()]
    try:
        values = np.array(numbers.reals(words))
    except ValueError as error:
        raise DataError(f"{location}: {error}, expected the probabilities of a reordering table") from error
    if len(values) not in ([count] if count else PROBABILITIES):
        numbers_of_types = ", ".join(map(str, PROBABILITIES))
        expected = f"{count} as in the first row" if count else f"one of {numbers_of_types}"
        noun = "probability" if len(values) == 1 else "probabilities"
        raise DataError(f"{location}: {len(values)} {noun}, expected {expected}")
    return values


def thin_sources(occurring: Occurring, table: KnownPairs, config: ProposeConfig) -> list[bytes]:
    """The phrases of a text, of up to `max_length` words, that have at most `thin` translations in the table
    or were extracted at most `rare` times, in byte order; without those that no table can hold. `config` has
    these three settings."""
    sources = []
    for source in sorted(occurring.grams):
        if source.count(b" ") >= config.max_length or not fits_table(source):
            continue
        options, count = len(table.targets.get(source, ())), table.counts.get(source, 0)
        if options <= config.thin or 0 < count <= config.rare:
            sources.append(source)
    return sources


def fits_table(phrase: bytes) -> bool:
    """Whether a phrase may stand in a table: Moses would take none of its words for factors, which have |, or
    for a non-terminal, such as [X]."""
    return b"|" not in phrase and not any(word[:1] + word[-1:] == b"[]" for word in phrase.split(b" "))


def read_lexicon(path: str) -> dict[tuple[bytes, bytes], float]:
    """Read one of Moses' lex files, with lines `word given probability`; returns the probabilities by (given,
    word). DataError for any other line."""
    lexicon = {}
    for number, line in enumerate(files.read_lines(path), 1):
        try:
            word, origin, probability = line.split(" ")
            lexicon[origin.encode(), word.encode()] = numbers.real(probability)
        except ValueError as error:
            raise DataError(
                f"{path}:{number}: expected 'word given probability', found {numbers.shown(line)}"
            ) from error
    return lexicon


def best_links(
    origins: Sequence[bytes], words: Sequence[bytes], lexicon: WordProbabilities
) -> tuple[list[tuple[int, int]], float]:
    """Link each of `words` to the word of `origins`, of which there is at least one, or to NULL, whichever
    makes it most likely. Returns the links as pairs of indices (origin, word), without those to NULL, and the
    product of the probabilities, each at least FLOOR."""
    points, weight = [], 1.0
    for position, word in enumerate(words):
        probabilities = [lexicon.get((origin, word), 0.0) for origin in origins]
        top = int(np.argmax(probabilities))
        null = lexicon.get((b"NULL", word), 0.0)
        if probabilities[top] >= null and probabilities[top] > 0:
            points.append((top, position))
        weight *= max(FLOOR, probabilities[top], null)
    return points, weight


def table_line(
    source: bytes,
    target: bytes,
    phi: tuple[float, float],
    lexicons: tuple[WordProbabilities, WordProbabilities],
    counts: tuple[int, int],
    bins: int = 0,
) -> bytes:
    """Format a line of the phrase table. `phi`: p(source | target) and p(target | source); `lexicons`:
    translation probabilities of target words given source words, and vice versa; `counts`: how often the
    target and the source were extracted; `bins`: number of count bins."""
    s, t = source.split(b" "), target.split(b" ")
    forward, direct = best_links(s, t, lexicons[0])
    backward, inverse = best_links(t, s, lexicons[1])
    linked = {word for word, _ in forward}
    points = sorted(
        {*forward, *((b, a) for a, b in backward if b not in linked)}, key=lambda point: (point[1], point[0])
    )
    values = (phi[0], inverse, phi[1], direct, *([1.0] * bins))
    scores = b" ".join(b"%.6g" % min(1.0, max(1e-38, score)) for score in values)
    alignment = b" ".join(b"%d-%d" % point for point in points)
    fields = (source, target, scores, PROPOSED, alignment, *counts)
    return b"%b ||| %b ||| %b %b ||| %b ||| %d %d 0 ||| |||" % fields


@dataclass(frozen=True)
class NetworkRequest:
    """Source phrases to translate, and pairs to score in the inverse direction."""

    sources: Sequence[bytes] = ()
    pairs: Sequence[tuple[bytes, bytes]] = ()


@dataclass(frozen=True)
class NetworkAnswers:
    """Results of a `NetworkRequest`, in its order."""

    translations: list[list[tuple[list[str], float]]]  # words and natural log p(target | source), best first
    inverse: list[float]  # p(source | target); empty without a network for it
    direct: list[float]  # p(target | source); empty unless the pairs are scored anew


@dataclass
class Networks:
    """Networks that propose translations and score them in the inverse direction."""

    # translations of each tokenized line, best first
    search: Callable[[Sequence[str], BeamConfig], list[list[BeamTranslation]]]
    inverse: PairFeature | None  # of the other direction, for p(source | target)
    beam_size: int
    files: Sequence[Path] = ()  # files of the searched network, on which its translations depend
    direct: PairFeature | None = None  # p(target | source), if the search does not give that of the words

    def identity(self) -> str:
        """`PairFeature.identity` of the network for the inverse direction; empty if there is none."""
        return self.inverse.identity() if self.inverse else ""

    def compute(self, request: NetworkRequest) -> NetworkAnswers:
        translations: list[list[tuple[list[str], float]]] = []
        if request.sources:
            texts = [" ".join(phrase_table.words(source)) for source in request.sources]
            beam = BeamConfig(beam_size=self.beam_size, normalize="none", max_length_factor=3.0)
            results = self.search(texts, beam)
            translations = [
                [(candidate.words, candidate.log_prob) for candidate in candidates] for candidates in results
            ]
        inverse, direct = (probabilities(feature, request.pairs) for feature in (self.inverse, self.direct))
        return NetworkAnswers(translations, inverse, direct)


def probabilities(feature: PairFeature | None, proposed: Sequence[tuple[bytes, bytes]]) -> list[float]:
    """The probability that a feature gives to each pair; empty without one."""
    if feature is None or not proposed:
        return []
    pairs = WordPairs(
        sources=[source.decode().split(" ") for source, _ in proposed],
        targets=[target.decode().split(" ") for _, target in proposed],
        source_of=list(range(len(proposed))),
    )
    return [math.exp(min(0.0, value)) for value in feature.score(pairs).tolist()]


NetworkExecutor = Executor[NetworkRequest, NetworkAnswers]
Proposal = tuple[bytes, bytes, float]  # source, target, p(target | source)


@dataclass
class Proposer:
    """Builds table rows from the answers of the networks."""

    config: ProposeConfig
    table: KnownPairs
    # of target words given source words, and vice versa
    lexicons: tuple[WordProbabilities, WordProbabilities]

    def rows(
        self,
        sources: Sequence[bytes],
        executor: NetworkExecutor,
        progress: Callable[[int], None] = lambda count: None,
    ) -> list[ProposedRow]:
        """Propose rows for some source phrases, in order of their lines. `executor` computes as
        `Networks.compute` does; `progress` is called with the number of phrases of each batch. UserError for
        phrases whose results were lost."""
        batches = [sources[start : start + BATCH] for start in range(0, len(sources), BATCH)]
        proposed: list[list[Proposal]] = []
        for batch, answers in zip(
            batches, require_results(executor.map(map(NetworkRequest, batches))), strict=True
        ):
            proposed.append(self.new_targets(batch, answers))
            progress(len(batch))
        rows: list[ProposedRow] = []
        requests = (NetworkRequest(pairs=[pair[:2] for pair in proposals]) for proposals in proposed)
        for proposals, answers in zip(proposed, require_results(executor.map(requests)), strict=True):
            direct = answers.direct or [probability for _, _, probability in proposals]
            phi = zip(answers.inverse or direct, direct, strict=True)
            for (source, target, _), scores in zip(proposals, phi, strict=True):
                counts = (self.table.target_counts.get(target, 0), self.table.counts.get(source, 0))
                line = table_line(source, target, scores, self.lexicons, counts, self.table.bins)
                rows.append(ProposedRow(line=line, reordering=self.reordering(source, target), source=source))
        return sorted(rows)

    def reordering(self, source: bytes, target: bytes) -> bytes:
        """Format the row of the reordering table for a proposed pair, with the mean scores of its source, or
        of all rows."""
        own = self.table.reordering.get(source, [])
        mean = np.mean(own, 0) if own else self.table.mean
        return b"%b ||| %b ||| %b" % (source, target, b" ".join(b"%.6g" % value for value in mean.tolist()))

    def new_targets(self, batch: Sequence[bytes], answers: NetworkAnswers) -> list[Proposal]:
        """Translations of a batch of sources that are likely enough and not yet in the table: for each source
        the best ones, at most `options`."""
        proposals = []
        for source, translations in zip(batch, answers.translations, strict=True):
            existing = {*self.table.targets.get(source, ())}
            new = 0
            for words, log_prob in translations:
                probability = math.exp(min(0.0, log_prob))
                if new >= self.config.options or probability < self.config.least:
                    break
                target = " ".join(self.table.words.get(word, escape(word)) for word in words).encode()
                if target and target not in existing:
                    proposals.append((source, target, probability))
                    existing.add(target)  # other units may spell the same words
                    new += 1
        return proposals


def merge_rows(
    pairs: Iterable[PhrasePair], rows: Collection[ProposedRow], reordering: Iterable[bytes] | None
) -> Iterator[tuple[bytes, bytes]]:
    """Merge proposed rows into both tables in LC_ALL=C order; yields the lines of the phrase table and of the
    reordering table, empty if `reordering` is None. Existing rows get 1 as their last score, which marks them
    as not proposed. `rows`: sorted, as from `Proposer.rows`; `reordering`: a line for each of `pairs`."""
    others = iter(reordering) if reordering is not None else None
    old = ((pair.line(TABLE), next(others) if others else b"") for pair in pairs)
    return heapq.merge(old, ((row.line, row.reordering) for row in rows), key=lambda both: both[0])
