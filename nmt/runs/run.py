"""A trained translator, or several as an ensemble, for Python programs, nmt-translate and nmt-score. An
engine computes it: torch (nmt/runs/torch_run.py), which is imported only if a run needs it, or CTranslate2
(nmt/runs/exported.py).

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
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, cast

from nmt.config.settings import changed
from nmt.documents.inline import AlignedTranslation
from nmt.errors import ConfigError, DataError, check_lines, check_pairs
from nmt.io import files
from nmt.lazy import LazyPart
from nmt.runs import directory as run_directory
from nmt.runs.pair import LanguagePair
from nmt.search import FinishedHypothesis
from nmt.search.config import BeamConfig, SamplingConfig
from nmt.text import pipeline, sentences
from nmt.text.lexicon import Lexicon
from nmt.text.pipeline import TextPipeline
from nmt.text.sentences import MAX_LINE_WORDS, LineLimit
from nmt.text.vocab import EOS, SPECIALS, UNK

if TYPE_CHECKING:
    from torch import nn

    from nmt.models.protocols import Source
    from nmt.runs.constraints import ConstraintMaker, Constraints, LineConstraints

# ---- translation -------------------------------------------------------------------------------------------
# Translations from beam search or sampling, as words.


@dataclass
class BeamTranslation:
    """One hypothesis for a line, as tokenized words with subwords joined."""

    words: list[str]
    log_prob: float  # natural logarithm, the end symbol included
    score: float  # the score by which hypotheses are ranked
    # (source word, target word), from 0; empty without attention, and for a line translated in parts
    alignment: list[tuple[int, int]] = field(default_factory=list)


def empty_candidate() -> FinishedHypothesis:
    """The translation of a line without words."""
    return FinishedHypothesis(words=[], log_prob=0.0, score=0.0)


def join_translations(parts: Sequence[BeamTranslation], target: TextPipeline) -> BeamTranslation:
    """Join the translations of a line's parts, adding log p and scores. Several parts have no alignment."""
    if len(parts) == 1:
        return parts[0]
    return BeamTranslation(
        words=target.concatenate(part.words for part in parts),
        log_prob=sum(part.log_prob for part in parts),
        score=sum(part.score for part in parts),
    )


# ---- lengths -----------------------------------------------------------------------------------------------
# Lengths of lines in the units of one or several runs, and what happens to lines that are too long.


# As a multiple of the limit: a word of more characters is not segmented into subwords, which would take
# forever, but cut into pieces.
GIANT_WORD = 4


class LineLengths:
    """Measures lines of one side of one or several runs, in units. Of several runs, the one that splits a
    word into the most units counts."""

    def __init__(self, pipelines: Sequence[TextPipeline], max_length: int) -> None:
        """`max_length`: maximum length of training sentences, in units."""
        self.pipelines, self.max_length = pipelines, max_length
        self.tokenized = pipelines[0].tokenized

    def limit(self, words: int | None = None, name: str = "", first: int = 0) -> LineLimit:
        """Make the limit on the length of lines: `words` units, or if None 250 or the maximum length in
        training, whichever is more. `name`, `first`: the file and the number of lines before these, for
        messages. ConfigError for fewer than one unit."""
        if words is not None and words < 1:
            raise ConfigError(f"max_line_words: {words} is out of range, expected 1 or more")
        return LineLimit(words=words or max(MAX_LINE_WORDS, self.max_length), name=name, first=first)

    def count_units(self, line: str, limit: LineLimit) -> int:
        """Number of units of a line; 0 if it has no more characters than the limit has units."""
        if len(line) <= limit.words:
            return 0
        return sum(map(self.sizes(limit), self.pieces(line)))

    def refuse(self, lines: Iterable[str], limit: LineLimit, what: str) -> None:
        """DataError for the first line that is too long. `what`: what cannot be computed for it."""
        limit.refuse((self.count_units(line, limit) for line in lines), what)

    def parts(self, line: str, limit: LineLimit) -> list[str]:
        """Cut a line into parts of at most the limit's units, each with its tag; [line] if it is short."""
        if self.count_units(line, limit) <= limit.words:
            return [line]
        tag, line = self.pipelines[0].split_tag(line)
        pieces = sentences.line_parts(self.pieces(line), limit.words, self.sizes(limit))
        texts = [(" " if self.tokenized else "").join(part).strip(" \t") for part in pieces]
        return [f"{tag} {text}" for text in texts] if tag else texts

    def pieces(self, line: str) -> list[str]:
        """Split a line into words, or a raw line into pieces, between which it may be cut."""
        return files.split_words(line) if self.tokenized else sentences.raw_pieces(line)

    def sizes(self, limit: LineLimit) -> Callable[[str], int]:
        """Make a function that counts the units of a word, or the characters of one too long to segment."""
        cutting = any(pipeline.subwords or pipeline.characters for pipeline in self.pipelines)

        @cache
        def size(word: str) -> int:
            if cutting and len(word) > GIANT_WORD * limit.words:
                return len(word)
            return max(len(pipeline.units(word)) for pipeline in self.pipelines)

        return size


# ---- run ---------------------------------------------------------------------------------------------------


SEARCHED = "n-best lists, samples, prefixes, constraints and alignments of the whole sentence"
FREQUENT = 100  # most frequent target words of every short-list
SCORED = "a score of the whole sentence"


@dataclass(frozen=True)
class TranslationRequest:
    """Lines to search together, and requirements on their translations. TypeError for a str instead."""

    lines: Sequence[str]
    prefixes: Sequence[str] = ()  # what the translation of each line has to begin with; empty: anything
    constraints: "Sequence[LineConstraints]" = ()  # of each line, by a ConstraintMaker; empty: none
    limit: LineLimit | None = None  # how long lines may be, and what messages call them; None: as for the run
    attention: bool = True  # whether alignments are needed; otherwise an engine may skip them

    def __post_init__(self) -> None:
        check_lines(self.lines)
        check_lines(self.prefixes, "prefixes")


class RunLoader(Protocol):
    """Loads the runs of one engine, such as torch."""

    def of(self, *directories: str | Path, which: str, device: str, threads: int) -> "Run":
        """Load one or more runs; see `Run.of`."""
        ...

    def set_up(self, directory: str | Path, device: str) -> None:
        """Set up the engine for a run, for Python programs."""
        ...


# The engine of trained runs, and that of runs written by nmt-export.
TORCH, CTRANSLATE2 = LazyPart("nmt.runs.torch_run:TorchRun"), LazyPart("nmt.runs.exported:ExportedRun")


def choose_engine(directories: Sequence[str | Path]) -> RunLoader:
    """Choose the engine that computes these runs; torch for a path without a run, since it reports what is
    wrong with it. ConfigError for no runs, and for several of which one is exported."""
    if not directories:
        raise ConfigError("no run directory is named; name one, or several for an ensemble")
    exported = [path for path in directories if run_directory.is_exported(path)]
    if exported and len(directories) > 1:
        raise ConfigError(
            f"{exported[0]}: is exported to CTranslate2, which has no ensembles; name the runs themselves"
        )
    return cast(RunLoader, (CTRANSLATE2 if exported else TORCH).load())


class Run(ABC):
    """One or more trained runs with one target vocabulary: an ensemble takes the mean of their probabilities.
    All calls keep the number and the order of lines. ConfigError for different target vocabularies.

    Lines are raw text, in and out; `for_text(tokenized=True)` gives the run for tokenized lines."""

    members: Sequence[LanguagePair]
    unknown: Lexicon | None = None  # translations of unknown words, see `replacing_unknown`

    @staticmethod
    def load(*directories: str | Path, which: str = "best", device: str = "cpu", threads: int = 0) -> "Run":
        """Load runs from their directories. `which`: best, last or a number of updates; `device`: cpu, cuda:N
        or auto; `threads`: of an exported run, 0 for up to four. CheckpointError says in one line what is
        wrong with a directory; ConfigError for a device that cannot be used, and for runs that cannot form an
        ensemble.

        This process's torch is set up as in nmt-translate: with the matrix back end of the (first) run.

        >>> Run.load("runs/en-fr", which="last")
        <Run en-fr@500: rnn from en to fr, 136 and 142 units, 22,218 parameters>
        """
        engine = choose_engine(directories)
        engine.set_up(directories[0], device)
        return engine.of(*directories, which=which, device=device, threads=threads)

    @staticmethod
    def of(*directories: str | Path, which: str = "best", device: str = "cpu", threads: int = 0) -> "Run":
        """Load runs without setting up torch, for commands that have done so and checked the device.
        Arguments and other errors as in `load`."""
        return choose_engine(directories).of(*directories, which=which, device=device, threads=threads)

    # ---- what an engine computes ---------------------------------------------------------------------------

    @abstractmethod
    def view(self, members: Sequence[LanguagePair], unknown: Lexicon | None) -> Self:
        """A run of the same models with other text pipelines, or with another lexicon for unknown words."""

    @property
    @abstractmethod
    def attends(self) -> bool:
        """Whether the (first) model has attention, which tells where a translated word comes from."""

    @abstractmethod
    def read(self, line: str) -> "Source":
        """Convert a line to the form that the engine reads; its length is 0 for a line without words."""

    @abstractmethod
    def search_readings(
        self,
        readings: "Sequence[Source]",
        config: BeamConfig,
        prefixes: Sequence[Sequence[int]] | None,
        constraints: "Sequence[LineConstraints] | None",
        attention: bool,
    ) -> list[list[FinishedHypothesis]]:
        """Search for translations of each line in the form that `read` returns; the finished hypotheses of
        each, best first. `prefixes`: ids that they must begin with; `constraints`: one for each line;
        `attention`: whether alignments are needed."""

    @abstractmethod
    def draw(self, reading: "Source", config: SamplingConfig, number: int) -> list[FinishedHypothesis]:
        """Sample translations of a line, as `read` returns it, from the model's distribution. `number`: its
        index in the whole input, which with the seed determines the samples."""

    @abstractmethod
    def unit_scores(self, pairs: Sequence[tuple[str, ...]]) -> list[list[float]]:
        """Natural log p of each unit of the target and of its end symbol, for each pair (source, target)."""

    @abstractmethod
    def maker(
        self, constraints: "Constraints", rows: "Iterable[tuple[str, str, str]] | None" = None
    ) -> "ConstraintMaker":
        """Create the maker of constraints for the search of this run; `rows` as for ConstraintMaker."""

    @abstractmethod
    def shortlisted(self, lexicon: Lexicon, frequent: int = FREQUENT) -> "Run":
        """The run with its softmax restricted to words that may translate a sentence: those of a lexical
        table, and the `frequent` most frequent words. ConfigError for models without short-lists."""

    @property
    def modules(self) -> "Sequence[nn.Module]":
        """The models that torch computes; empty for other engines."""
        return ()

    # ---- text ----------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Run {' + '.join(member.description for member in self.members)}>"

    @property
    def name(self) -> str:
        """The names of the models in results."""
        return " + ".join(member.name for member in self.members)

    def files(self) -> list[Path]:
        """Paths of the files that results depend on."""
        return [path for member in self.members for path in member.files()]

    @property
    def target(self) -> TextPipeline:
        """The text pipeline of the target side."""
        return self.members[0].target

    @property
    def max_length(self) -> int:
        """Maximum length of training sentences, in units; longer ones were dropped (`data.max_length`)."""
        return max(member.max_length for member in self.members)

    @cached_property
    def source_lengths(self) -> LineLengths:
        """Limits and lengths of source lines, in units."""
        return LineLengths([member.source for member in self.members], self.max_length)

    @cached_property
    def target_lengths(self) -> LineLengths:
        """Limits and lengths of target lines, in units."""
        return LineLengths([member.target for member in self.members], self.max_length)

    def for_text(self, tokenized: bool) -> Self:
        """This run for raw lines, or for lines that are tokenized like the training text: words between
        blanks, in and out. Both share their models.

        >>> run = Run.load("runs/en-fr").for_text(tokenized=True)
        >>> run.translate(["a boy does not follow the man ."])
        ["un garçon ne suit pas l' homme ."]
        """
        return self if tokenized == self.tokenized else self.other_text

    @property
    def tokenized(self) -> bool:
        """Whether lines are words between blanks."""
        return self.members[0].source.tokenized

    @cached_property
    def other_text(self) -> Self:
        """The run for tokenized lines if this one is for raw lines, and vice versa."""
        return self.view([member.for_text(not self.tokenized) for member in self.members], self.unknown)

    def replacing_unknown(self, lexicon: Lexicon) -> Self:
        """The run with each UNK in a translation replaced: by this table's translation of the source word
        with the most attention, or by that word itself if the table has none."""
        return self.view(self.members, lexicon)

    def target_ids(self, line: str) -> list[int]:
        """Convert a target line to ids, without the end symbol."""
        return self.members[0].target_ids(line)

    def fitted(self, config: BeamConfig) -> BeamConfig:
        """Search settings for this run: UNK may be produced where it is replaced."""
        return replace(
            config, allow_unknown=config.allow_unknown or (self.unknown is not None and self.attends)
        )

    def search(self, request: TranslationRequest, config: BeamConfig) -> list[list[FinishedHypothesis]]:
        """Search for translations of the lines of a request; the finished hypotheses of each, best first. A
        line without words has one empty hypothesis of probability 1. DataError for a line that is too long,
        and if constraints that must be met cannot be; ConfigError for settings out of range."""
        config.check()
        self.refuse_long(request)
        readings = [self.read(line) for line in request.lines]
        full = [index for index, reading in enumerate(readings) if len(reading)]
        prefixes, constraints = request.prefixes, request.constraints
        translations = self.search_readings(
            [readings[index] for index in full],
            self.fitted(config),
            [self.target_ids(prefixes[index]) for index in full] if prefixes else None,
            [constraints[index] for index in full] if constraints else None,
            request.attention,
        )
        results = [[empty_candidate()] for _ in request.lines]
        for index, candidates in zip(full, translations, strict=True):
            results[index] = candidates
        return results

    def refuse_long(self, request: TranslationRequest) -> None:
        """DataError for a line that is too long to be searched as one sentence."""
        limit = request.limit or self.source_lengths.limit()
        self.source_lengths.refuse(request.lines, limit, SEARCHED)

    def sample(self, request: TranslationRequest, config: SamplingConfig) -> list[list[FinishedHypothesis]]:
        """Sample translations of each line from the model's distribution. The same seed and line number in
        the whole input (`request.limit.first`) give the same translations. DataError for a line that is too
        long, ConfigError for settings out of range."""
        config.check()
        self.refuse_long(request)
        results = []
        for index, line in enumerate(request.lines, request.limit.first if request.limit else 0):
            # one by one: the random numbers of a sentence depend on its position, and would on its batch
            reading = self.read(line)
            empty = [empty_candidate()] * config.samples
            results.append(self.draw(reading, config, index) if len(reading) else empty)
        return results

    def translation(self, line: str, candidate: FinishedHypothesis, prefix: str = "") -> BeamTranslation:
        """Convert a candidate for a source line from ids to words, align them to the source words by
        attention, and replace unknown words if the run has a lexicon for them. `prefix`: what it was made to
        begin with; its words stay as they are, even unknown ones."""
        member, unknown = self.members[0], self.unknown
        units = member.target_words.decode(candidate.words)
        if prefix:
            start = member.target.units(prefix)[: len(units)]
            units[: len(start)] = start
        words_of = member.target.word_numbers(units)
        alignment: list[tuple[int, int]] = []
        if candidate.looked_at:
            source_units = member.source.units(line)
            source_of = member.source.word_numbers(source_units)
            source = member.source.join(source_units)
            alignment = sorted(
                {(source_of[look], words_of[unit]) for unit, look in enumerate(candidate.looked_at)}
            )
            if unknown is not None:
                words = (source[source_of[look]] for look in candidate.looked_at)
                instead = [
                    SPECIALS[UNK] if word in member.source.tags else unknown.best(word) for word in words
                ]
                units = [
                    word if unit == SPECIALS[UNK] else unit for unit, word in zip(units, instead, strict=True)
                ]
        return BeamTranslation(
            words=member.target.join(units),
            log_prob=candidate.log_prob,
            score=candidate.score,
            alignment=alignment,
        )

    def n_best(
        self,
        lines: Sequence[str],
        config: BeamConfig | None = None,
        constraints: "Constraints | None" = None,
        **settings: object,
    ) -> list[list[BeamTranslation]]:
        """All finished hypotheses of each line, best first; settings, constraints and errors as in
        `translate`, but DataError for a line that is too long.

        >>> run = Run.load("runs/en-fr")
        >>> [candidates] = run.n_best(["A boy does not follow the man."], beam_size=5)
        >>> candidates[0].words
        ['un', 'garçon', 'ne', 'suit', 'pas', "l'", 'homme', '.']
        >>> candidates[0].score >= candidates[1].score
        True
        """
        check_lines(lines)
        request = TranslationRequest(
            lines, constraints=self.maker(constraints).for_lines(lines) if constraints else ()
        )
        translations = self.search(request, changed(config or BeamConfig(), settings))
        return [
            [self.translation(line, candidate) for candidate in candidates]
            for line, candidates in zip(lines, translations, strict=True)
        ]

    def best(
        self,
        lines: Sequence[str],
        config: BeamConfig,
        limit: LineLimit | None = None,
        constraints: "ConstraintMaker | None" = None,
        attention: bool = False,
    ) -> list[BeamTranslation]:
        """The best translation of each line. Lines that are longer than `limit` (by default that of the run)
        are translated in parts, and have no alignment. `constraints`: makes those of each line, without
        phrases for single lines; `attention`: whether alignments are needed. DataError if they cannot be met,
        ConfigError for settings out of range."""
        check_lines(lines)
        limit = limit or self.source_lengths.limit()
        cut = [self.source_lengths.parts(line, limit) for line in lines]
        located = [(part, limit.location(index)) for index, parts in enumerate(cut) for part in parts]
        request = TranslationRequest(
            [part for part, _ in located],
            constraints=[constraints.for_line(part, name) for part, name in located] if constraints else (),
            limit=LineLimit(sys.maxsize),
            attention=attention or self.unknown is not None,
        )
        translations = iter(self.search(request, config))
        return [
            join_translations([self.translation(part, next(translations)[0]) for part in parts], self.target)
            for parts in cut
        ]

    def best_aligned(
        self,
        lines: Sequence[str],
        config: BeamConfig,
        limit: LineLimit,
        constraints: "ConstraintMaker | None" = None,
        tag: str = "",
    ) -> list[AlignedTranslation]:
        """The best translation of each line with its word alignment, for documents with inline markup.
        Without attention, and for a line that is translated in parts, there is no alignment. `tag`: put
        before each line; other arguments and errors as in `best`."""
        tagged = [f"{tag} {line}" if tag else line for line in lines]
        best = self.best(tagged, config, limit, constraints, attention=self.attends)
        source = self.members[0].source
        return [
            AlignedTranslation(
                text=self.text(translation),
                source_words=source.join(source.units(line)) if translation.alignment else (),
                target_words=translation.words,
                alignment=list(pipeline.without_tag(translation.alignment)) if tag else translation.alignment,
            )
            for line, translation in zip(lines, best, strict=True)
        ]

    def translate(
        self,
        lines: Sequence[str],
        config: BeamConfig | None = None,
        max_line_words: int | None = None,
        constraints: "Constraints | None" = None,
        split_sentences: bool = False,
        prefixes: Sequence[str] = (),
        **settings: object,
    ) -> list[str]:
        """The best translation of each line. `settings`: those of BeamConfig by name, which win over
        `config`. TypeError for a name that is none of them, and for a str instead of a list of lines;
        ConfigError for a value out of its range.

        `prefixes`: what the translation of each line begins with, one for each line; an empty one allows
        anything. DataError if there are more or fewer than lines.

        Lines of more than `max_line_words` (250, or what the training allowed) are translated in parts, cut
        at punctuation; with prefixes or constraints of single lines they are a DataError. `split_sentences`:
        each sentence of a raw line by itself; ConfigError with prefixes or constraints of single lines.

        >>> run = Run.load("runs/en-fr")
        >>> run.translate(["A boy does not follow the man."], beam_size=3)
        ["Un garçon ne suit pas l'homme."]
        """
        check_lines(lines)
        check_lines(prefixes, "prefixes")
        if prefixes and len(prefixes) != len(lines):
            raise DataError(f"{len(prefixes)} prefixes of {len(lines)} lines; give each line one, or none")
        config = changed(config or BeamConfig(), settings)
        maker = self.maker(constraints) if constraints else None
        whole = bool(prefixes) or (maker is not None and maker.by_line)
        if split_sentences and (self.tokenized or whole):
            raise ConfigError(
                "split_sentences requires raw text, and excludes prefixes and constraints of single lines"
            )
        split = self.split(lines) if split_sentences else sentences.whole_lines(lines)
        limit = replace(self.source_lengths.limit(max_line_words), numbers=split.numbers)
        if whole:
            request = TranslationRequest(
                lines, prefixes, constraints=maker.for_lines(lines) if maker else (), limit=limit
            )
            best = self.search(request, config)
            starts = prefixes or [""] * len(lines)
            results = [
                self.translation(line, row[0], prefix)
                for line, row, prefix in zip(lines, best, starts, strict=True)
            ]
        else:
            results = self.best(split.sentences, config, limit=limit, constraints=maker)
        return split.join(self.text(translation) for translation in results)

    def split(self, lines: Sequence[str]) -> sentences.SplitText:
        """Split raw lines into sentences by the rules of the source language, each with its line's tag."""
        first = self.members[0]
        return sentences.split_text(lines, *first.languages, first.source.split_tag)

    def text(self, translation: BeamTranslation) -> str:
        """Join a translation into a line of text."""
        return self.target.line(translation.words)

    def target_units(self, line: str) -> list[str]:
        """The units, mostly subwords, that the models read a line of the target as, and the end symbol."""
        return [*self.target.units(line), SPECIALS[EOS]]

    def word_scores(
        self, pairs: Sequence[tuple[str, ...]], limit: LineLimit | None = None
    ) -> list[list[float]]:
        """Natural log p of each unit of the target and of its end symbol, for each pair (source, target); the
        units are those of `target_units`. DataError for a pair that is longer than `limit`, TypeError for a
        str instead of a list of pairs."""
        check_pairs(pairs)
        self.refuse_long_pairs(pairs, limit)
        return self.unit_scores(pairs)

    def refuse_long_pairs(self, pairs: Sequence[tuple[str, ...]], limit: LineLimit | None) -> None:
        """DataError for a pair (source, target) with a line longer than `limit`, by default the run's."""
        limit = limit or self.source_lengths.limit()
        for side, lengths in enumerate((self.source_lengths, self.target_lengths)):
            lengths.refuse((pair[side] for pair in pairs), limit, SCORED)

    def score(self, pairs: Sequence[tuple[str, ...]]) -> list[float]:
        """Natural log p(target | source) of each pair (source, target), the end symbol included. DataError
        for a pair that is too long.

        >>> run = Run.load("runs/en-fr")
        >>> source = "A boy does not follow the man."
        >>> likely, unlikely = run.score([(source, "Un garçon ne suit pas l'homme."), (source, "La la.")])
        >>> likely > unlikely
        True
        """
        return [math.fsum(values) for values in self.word_scores(pairs)]
