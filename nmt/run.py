"""A trained translator, or several as an ensemble, from Python; nmt-translate and nmt-score are made of these
calls.

>>> import nmt
>>> run = nmt.Run.load("runs/en-fr")                 # Run.load("runs/a", "runs/b") is an ensemble
>>> run.translate(["A boy does not follow the man."])
["Un garçon ne suit pas l'homme."]
>>> [score] = run.score([("A boy does not follow the man.", "Un garçon ne suit pas l'homme.")])
>>> round(score, 2)                                  # natural log p, the end of the sentence included
-6.43
"""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from torch import tensor

from nmt import checkpoint, files
from nmt.checkpoint import SavedRun
from nmt.data import long_lines
from nmt.data.batches import Ids
from nmt.data.lexicon import Lexicon, shortlist
from nmt.data.long_lines import MAX_LINE_WORDS, Limit
from nmt.data.subword import SEPARATOR
from nmt.data.text import TextPipeline
from nmt.data.vocab import SPECIALS, UNK
from nmt.errors import ConfigError
from nmt.models.protocols import Restrictable
from nmt.scoring import word_scores
from nmt.search.beam import Candidate, search
from nmt.search.config import BeamConfig, SamplingConfig
from nmt.search.sampling import sample
from nmt.search.shortlist import Shortlisted
from nmt.search.steps import Ensemble, Reading, StepModel, mean_log_probs

# times the longest line: a word of more characters than that is not cut into subwords, which would take
# forever, but into pieces
GIANT = 4
SEARCHED, SCORED = (
    "n-best lists, samples, prefixes and alignments of the whole sentence",
    "a score of the whole sentence",
)
FREQUENT = 100  # most frequent target words of every short-list

CACHED, LEAST_ROWS, MOST_ROWS = (
    3 << 20,
    50,
    400,
)  # scores (12 MiB) that a batch of live hypotheses may hold, and its bounds


@dataclass
class Translation:
    """One hypothesis for a line: tokenized words, subwords joined."""

    words: list[str]
    log_prob: float  # natural logarithm, the end symbol included
    score: float  # what hypotheses are ranked by
    alignment: list[tuple[int, int]] = field(
        default_factory=list
    )  # source word, target word, from 0; with attention only


class Run:
    """One or more trained runs with one target vocabulary. All calls keep the number and the order of
    lines."""

    def __init__(self, members: Sequence[SavedRun]) -> None:
        self.members = list(members)
        first = self.members[0]
        for member in self.members[1:]:
            if member.target_words.words != first.target_words.words:
                raise ConfigError(
                    f"{member.directory}: its target vocabulary is not that of {first.directory}; an "
                    "ensemble needs one and the same"
                )

    @staticmethod
    def load(*directories: str | Path, which: str = "best", device: str = "cpu") -> "Run":
        """CheckpointError says in one line what is wrong with a directory; `which`: best, last or an
        update."""
        return Run([checkpoint.load(directory, which, device) for directory in directories])

    @property
    def name(self) -> str:
        """How results name the models that made them."""
        return " + ".join(member.name for member in self.members)

    @property
    def target(self) -> TextPipeline:
        return self.members[0].target

    @property
    def max_length(self) -> int:
        """The longest sentence seen in training, in units."""
        return max(member.data.max_length for member in self.members)

    @cached_property
    def model(self) -> StepModel[Any]:
        """What search asks for the next word."""
        models = [member.model for member in self.members]
        return models[0] if len(models) == 1 else Ensemble(models)

    def shortlisted(self, lexicon: Lexicon, frequent: int = FREQUENT) -> StepModel[Any]:
        """The same, each with its softmax over the words that may translate a sentence."""
        models: list[StepModel[Any]] = []
        for member in self.members:
            if not isinstance(member.model, Restrictable):
                raise ConfigError(f"{member.directory}: a model of its type has no short-lists")
            models.append(Shortlisted(member.model, ShortlistOf(member, lexicon, frequent)))
        return models[0] if len(models) == 1 else Ensemble(models)

    def read(self, line: str, tokenized: bool = False) -> Any:
        """The ids of a line, or a Reading of each member's; empty for a line without words."""
        ids = tuple(
            member.source_words.encode(member.source.units(line, tokenized)) for member in self.members
        )
        return ids[0] if len(ids) == 1 else Reading(ids)

    def target_ids(self, line: str, tokenized: bool = False) -> list[int]:
        return self.members[0].target_words.encode(self.members[0].target.units(line, tokenized))

    def limit(self, words: int | None = None, name: str = "", first: int = 0) -> Limit:
        """How long lines may be; None: 250 words, or what the training allowed if that is more."""
        return Limit(words or max(MAX_LINE_WORDS, self.max_length), name, first)

    def length(self, line: str, tokenized: bool, limit: Limit, target: bool = False) -> int:
        """Units of a line; 0 for one that cannot be too long."""
        if len(line) <= limit.words:
            return 0
        words = files.split_words(line) if tokenized else long_lines.pieces(line)
        return sum(map(self.sizes(tokenized, limit, target), words))

    def refuse_long(
        self, lines: Iterable[str], tokenized: bool, limit: Limit, what: str, target: bool = False
    ) -> None:
        """DataError for the first line that is too long; `what` it is too long for."""
        limit.refuse((self.length(line, tokenized, limit, target) for line in lines), what)

    def sizes(self, tokenized: bool, limit: Limit, target: bool = False) -> Callable[[str], int]:
        """Units of a word, in the member that cuts it finest; of one with thousands of characters no more is
        asked than how many those are."""
        pipelines = [member.target if target else member.source for member in self.members]
        cutting = any(pipeline.subwords or pipeline.characters for pipeline in pipelines)

        @cache
        def size(word: str) -> int:
            if cutting and len(word) > GIANT * limit.words:
                return len(word)
            return max(len(pipeline.units(word, tokenized)) for pipeline in pipelines)

        return size

    def parts(self, line: str, tokenized: bool, limit: Limit) -> list[str]:
        """The line, or the parts of one that is too long."""
        if self.length(line, tokenized, limit) <= limit.words:
            return [line]
        words = files.split_words(line) if tokenized else long_lines.pieces(line)
        found = long_lines.parts(words, limit.words, self.sizes(tokenized, limit))
        return [(" " if tokenized else "").join(part).strip(" \t") for part in found]

    def search(
        self,
        lines: Sequence[str],
        config: BeamConfig,
        tokenized: bool = False,
        prefixes: Sequence[str] | None = None,
        model: StepModel[Any] | None = None,
        limit: Limit | None = None,
    ) -> list[list[Candidate]]:
        """The finished hypotheses of each line, best first. A line without words has one: empty, of
        probability 1. DataError for one that is too long.

        `prefixes`: for each line the text that its translation has to begin with; `model`: e.g. that of
        `shortlisted`.
        """
        limit = limit or self.limit()
        self.refuse_long(lines, tokenized, limit, SEARCHED)
        readings = [self.read(line, tokenized) for line in lines]
        full = [index for index, reading in enumerate(readings) if len(reading)]
        forced = [self.target_ids(prefixes[index], tokenized) for index in full] if prefixes else None
        results = [[Candidate([], 0.0, 0.0)] for _ in lines]
        if not config.rows:
            config = replace(
                config, rows=min(MOST_ROWS, max(LEAST_ROWS, CACHED // len(self.members[0].target_words)))
            )
        for index, candidates in zip(
            full, search(model or self.model, [readings[i] for i in full], config, forced), strict=True
        ):
            results[index] = candidates
        return results

    def sample(
        self,
        lines: Sequence[str],
        config: SamplingConfig,
        tokenized: bool = False,
        first: int = 0,
        limit: Limit | None = None,
    ) -> list[list[Candidate]]:
        """Draws from the model's distribution for each line; `first`: number of the first line in the whole
        input."""
        limit = limit or self.limit(first=first)
        self.refuse_long(lines, tokenized, limit, SEARCHED)
        readings = [self.read(line, tokenized) for line in lines]
        results = []
        for index, reading in enumerate(
            readings
        ):  # one by one: a sentence's numbers hang on its place, and so would a batch
            results += (
                sample(self.model, [reading], config, first + index)
                if len(reading)
                else [[Candidate([], 0.0, 0.0)] * config.samples]
            )
        return results

    def translation(
        self, line: str, candidate: Candidate, tokenized: bool = False, unknown: Lexicon | None = None
    ) -> Translation:
        """A candidate as words. `unknown` replaces each UNK by a translation of the source word that the
        attention looked at."""
        member = self.members[0]
        units = member.target_words.decode(candidate.words)
        words_of = word_numbers(units)
        alignment: list[tuple[int, int]] = []
        if candidate.looked_at:
            source_units = member.source.units(line, tokenized)
            source_of = word_numbers(source_units)
            source = member.source.join(source_units)
            alignment = sorted(
                {(source_of[look], words_of[place]) for place, look in enumerate(candidate.looked_at)}
            )
            if unknown is not None:
                instead = [unknown.best(source[source_of[look]]) for look in candidate.looked_at]
                units = [
                    other if unit == SPECIALS[UNK] else unit
                    for unit, other in zip(units, instead, strict=True)
                ]
        return Translation(member.target.join(units), candidate.log_prob, candidate.score, alignment)

    def n_best(
        self, lines: Sequence[str], config: BeamConfig | None = None, tokenized: bool = False
    ) -> list[list[Translation]]:
        """All finished hypotheses of each line, best first."""
        found = self.search(lines, config or BeamConfig(), tokenized)
        return [
            [self.translation(line, candidate, tokenized) for candidate in candidates]
            for line, candidates in zip(lines, found, strict=True)
        ]

    def best(
        self,
        lines: Sequence[str],
        config: BeamConfig,
        tokenized: bool = False,
        model: StepModel[Any] | None = None,
        unknown: Lexicon | None = None,
        limit: Limit | None = None,
    ) -> list[Translation]:
        """The best translation of each line. Lines that are too long are translated in parts, and have no
        alignment."""
        limit = limit or self.limit()
        cut = [self.parts(line, tokenized, limit) for line in lines]
        every = Limit(sys.maxsize)
        found = iter(
            self.search([part for parts in cut for part in parts], config, tokenized, None, model, every)
        )
        return [
            joined([self.translation(part, next(found)[0], tokenized, unknown) for part in parts])
            for parts in cut
        ]

    def translate(
        self,
        lines: Sequence[str],
        config: BeamConfig | None = None,
        tokenized: bool = False,
        max_line_words: int | None = None,
    ) -> list[str]:
        """The best translation of each line: detokenized text, or words between blanks for tokenized input.

        Lines of more than `max_line_words` (250, or what the training allowed) are translated in parts, cut
        at punctuation.
        """
        return [
            self.text(found, tokenized)
            for found in self.best(lines, config or BeamConfig(), tokenized, limit=self.limit(max_line_words))
        ]

    def text(self, translation: Translation, tokenized: bool = False) -> str:
        return self.target.line(translation.words, tokenized)

    def word_scores(
        self, pairs: Sequence[tuple[str, ...]], tokenized: bool = False, limit: Limit | None = None
    ) -> list[list[float]]:
        """Natural log p of each unit of the second text of a pair and of its end symbol. DataError for a pair
        that is too long."""
        limit = limit or self.limit()
        for side in (0, 1):
            self.refuse_long((pair[side] for pair in pairs), tokenized, limit, SCORED, target=side == 1)
        targets = [self.target_ids(target, tokenized) for _, target in pairs]
        sources = [
            [member.source_words.encode(member.source.units(source, tokenized)) for source, _ in pairs]
            for member in self.members
        ]
        scores = [
            word_scores(member.model, list(zip(ids, targets, strict=True)))
            for member, ids in zip(self.members, sources, strict=True)
        ]
        if len(scores) == 1:
            return scores[0]
        return [
            mean_log_probs([tensor(row).double() for row in rows]).tolist()
            for rows in zip(*scores, strict=True)
        ]

    def score(self, pairs: Sequence[tuple[str, ...]], tokenized: bool = False) -> list[float]:
        """Natural log p(second text | first text) of each pair, the end symbol included."""
        return [math.fsum(values) for values in self.word_scores(pairs, tokenized)]


@dataclass
class ShortlistOf:
    """The ids of the target words that may translate a sentence of source ids; UNK, BOS and EOS are always
    among them."""

    member: SavedRun
    lexicon: Lexicon
    frequent: int

    def __call__(self, source: Ids) -> set[int]:
        words = self.member.source.join(self.member.source_words.decode(map(int, source)))
        if not self.member.target.subwords:
            return shortlist(self.lexicon, words, self.member.target_words, self.frequent)
        units = {unit for word in self.lexicon.candidates(words) for unit in self.member.target.cut([word])}
        return shortlist(Lexicon({"": sorted(units)}), [""], self.member.target_words, self.frequent)


def joined(parts: Sequence[Translation]) -> Translation:
    """Translations of the parts of a line as one, without alignment."""
    if len(parts) == 1:
        return parts[0]
    return Translation(
        [word for part in parts for word in part.words],
        sum(part.log_prob for part in parts),
        sum(part.score for part in parts),
    )


def word_numbers(units: Sequence[str]) -> list[int]:
    """Which word each subword unit belongs to: `lo@@ wer case` -> 0 0 1"""
    numbers, word = [], 0
    for unit in units:
        numbers.append(word)
        word += not unit.endswith(SEPARATOR)
    return numbers
