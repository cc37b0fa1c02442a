"""Runs exported to CTranslate2 by nmt-export, and CTranslate2 models of others (nmt-import): translated and
scored without torch.

A folder of either has

    version                  `nmt-ctranslate2 1`
    export.json              ExportSettings
    model.bin config.json ..._vocabulary.json    CTranslate2's model
    source.vocab target.vocab, source.codes or source.spm, source.truecase ...    the text pipeline
    manifest.json            sizes and checksums of all files above

CTranslate2 has a beam search of its own; docs/other-models.md says where it equals torch. Its
scores are natural log p, by which hypotheses are ranked as in nmt/search. If a word is forbidden, CTranslate2
renormalizes p; then log p is computed again.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Self, cast

from nmt.config import typed_json
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.io import files, manifest
from nmt.runs import directory as run_directory
from nmt.runs.framed import Frame, FramedTranslator, load_translator
from nmt.runs.pair import LanguagePair, describe, load_text
from nmt.runs.run import FREQUENT, Run
from nmt.search import FinishedHypothesis
from nmt.search.config import REFILL, BeamConfig, SamplingConfig, length_normalizer
from nmt.text.lexicon import Lexicon
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.vocab import BOS, EOS, SPECIALS, UNK, Vocab

if TYPE_CHECKING:
    import numpy as np
    from ctranslate2 import TranslationResult
    from numpy.typing import NDArray

    from nmt.runs.constraints import ConstraintMaker, Constraints, LineConstraints

FORMAT, SETTINGS = f"{run_directory.EXPORTED} 1", "export.json"
QUANTIZATIONS = (
    "float32", "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16",
)  # fmt: skip
# A search ends when PATIENCE times the beam size hypotheses have finished. The beam of nmt/search shrinks by
# one with each finished hypothesis, and so searches longer: at 1 some of its translations were missed, at 1.6
# none.
PATIENCE = 1.6
BATCH = 8  # sentences in a call of CTranslate2, of similar length; int8 takes 6% longer for 16
GPU_BATCH = 256  # on a GPU

# ---- the folder --------------------------------------------------------------------------------------------


@dataclass
class ExportSettings:
    """The content of export.json: the model and the text settings of an exported run."""

    name: str  # of the model in results
    step: int
    parameters: int  # their number
    quantization: str  # of the matrices, one of QUANTIZATIONS
    max_length: int  # maximum length of training sentences, in units
    source: SideConfig
    target: SideConfig
    tags: list[str]
    shared_vocabulary: bool
    frame: Frame = field(default_factory=Frame)  # of a model that nmt-import has read

    def save(self, new: Path) -> None:
        """Write export.json and the format version to the folder `new`. UserError if that fails."""
        content = {"format": FORMAT, **asdict(self)}
        files.write_text(new / SETTINGS, [json.dumps(content, indent=1, ensure_ascii=False)])
        files.write_text(new / run_directory.VERSION_FILE, [FORMAT])


@dataclass
class ExportedPair(LanguagePair):
    """The text pipelines, vocabularies and settings of an exported run."""

    directory: Path
    step: int
    source: TextPipeline
    target: TextPipeline
    source_words: Vocab
    target_words: Vocab
    settings: ExportSettings

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def languages(self) -> tuple[str, str]:
        return self.settings.source.language, self.settings.target.language

    @property
    def max_length(self) -> int:
        return self.settings.max_length

    @property
    def description(self) -> str:
        size = f"{self.settings.parameters:,} parameters in {self.settings.quantization}"
        return describe(self, "transformer in CTranslate2", size)

    def files(self) -> list[Path]:
        return run_directory.model_files(self.directory)


def load_pair(directory: Path) -> ExportedPair:
    """Verify all files of an exported run, and load its text pipelines, vocabularies and settings.
    CheckpointError if it is damaged, or of another format."""
    path = directory / SETTINGS
    try:
        manifest.verify(directory, manifest.load(directory))
        version = files.read_small(directory / run_directory.VERSION_FILE).decode("utf-8").strip()
        if version != FORMAT:
            raise CheckpointError(
                f"{directory}: format {version[:40]!r}, this version reads {FORMAT!r}; export or import it "
                "again"
            )
        settings = typed_json.parse(ExportSettings, path.read_text(encoding="utf-8"), {"format": FORMAT})
    except DataError as error:
        raise CheckpointError(str(error)) from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: damaged settings ({error}); export or import it again") from error
    tags, shared = settings.tags, settings.shared_vocabulary
    source, source_words = load_text(directory, "source", settings.source, tags, shared)
    target, target_words = load_text(directory, "target", settings.target, tags, shared)
    return ExportedPair(directory, settings.step, source, target, source_words, target_words, settings)


# ---- search ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BoundedSource:
    """A source sentence, the bounds of the length of its translations, both inclusive and in units without
    the end symbol, and the units that they must begin with."""

    source: Sequence[str]
    longest: int
    shortest: int = 0
    prefix: Sequence[str] = ()

    @property
    def group(self) -> tuple[int, int]:
        """Minimum length and prefix length: the same for all sentences of a call."""
        return self.shortest, len(self.prefix)


@dataclass
class Candidate:
    """A hypothesis in units, without the end symbol."""

    units: Sequence[str]
    log_prob: float  # natural logarithm, with the end symbol
    # Weights over the source units, for each unit, and for what follows them if the hypothesis was cut off;
    # may be empty.
    attention: Sequence[Sequence[float]]
    complete: bool = True  # False: ended by the length limit


@dataclass
class Search:
    """Beam search by CTranslate2, with the bounds and the ranking of nmt/search/beam.py.

    The first search forbids nothing, so that scores are log p. Sentences whose results contain a forbidden
    word are searched again without it; finally, sentences that do not end within their own bound are searched
    one by one.
    """

    translator: FramedTranslator
    target_words: Vocab
    config: BeamConfig
    attention: bool  # whether hypotheses say which source units they attend to

    def run(self, sentences: Sequence[BoundedSource]) -> list[list[FinishedHypothesis]]:
        """The finished hypotheses of each sentence, best first. DataError for a sentence that is too long."""
        check_positions(sentences, self.translator.frame)
        results: list[list[Candidate]] = [[]] * len(sentences)
        waiting = sorted(range(len(sentences)), key=lambda i: (sentences[i].group, len(sentences[i].source)))
        most = GPU_BATCH if self.translator.on_gpu else BATCH
        for masked, size in ((False, most), (True, most), (True, 1)):
            unfinished: list[int] = []
            for batch in batches(sentences, waiting, size):
                for index, candidates in zip(
                    batch, self.call([sentences[index] for index in batch], masked, size == 1), strict=True
                ):
                    results[index] = candidates
                    unfinished += [] if candidates else [index]
            waiting = unfinished
        return [self.rank(candidates) for candidates in results]

    def call(self, batch: Sequence[BoundedSource], masked: bool, accept_cut: bool) -> list[list[Candidate]]:
        """Search for translations of a batch. Returns the candidates of each sentence; none for a sentence
        that must be searched again. `masked`: forbid words that no translation may contain; `accept_cut`:
        accept hypotheses cut at the limit if no other has ended."""
        config, limit = self.config, max(sentence.longest for sentence in batch)
        shortest, start = batch[0].group
        masked = masked or bool(shortest or start or config.no_repeat_ngram)
        patience = PATIENCE if config.beam_size > 1 else 1.0
        results = self.translator.translate(
            [sentence.source for sentence in batch],
            [sentence.prefix for sentence in batch],
            limit + 1,
            shortest,
            beam_size=config.beam_size,
            patience=patience,
            num_hypotheses=round(config.beam_size * patience),
            length_penalty=0,
            no_repeat_ngram_size=config.no_repeat_ngram,
            disable_unk=masked and not config.allow_unknown,
            suppress_sequences=[[token] for token in self.translator.frame.unwritten] if masked else None,
            return_scores=True,
            return_end_token=True,
            return_attention=self.attention,
        )
        candidates = [
            self.candidates(result, sentence, masked, sentence.longest == limit, accept_cut)
            for result, sentence in zip(results, batch, strict=True)
        ]
        if masked:
            self.rescore(batch, candidates)
        return candidates

    def candidates(
        self,
        result: "TranslationResult",
        sentence: BoundedSource,
        masked: bool,
        at_limit: bool,
        accept_cut: bool,
    ) -> list[Candidate]:
        """The candidates of a sentence; none if it must be searched again. `masked`, `accept_cut`: as in
        `call`; `at_limit`: the search was limited to this sentence's maximum length, not to a longer one."""
        forbidden = {
            *self.translator.frame.unwritten,
            *([] if self.config.allow_unknown else [SPECIALS[UNK]]),
        }
        # By units: short of continuations, CTranslate2 lists hypotheses twice, and forbidden ones.
        ended: dict[tuple[str, ...], Candidate] = {}
        cut: dict[tuple[str, ...], Candidate] = {}
        for units, log_prob, weights in self.translator.hypotheses(result, sentence.source):
            if not forbidden.isdisjoint(units[len(sentence.prefix) :]):
                if masked:
                    continue
                return []
            if units[-1:] == [SPECIALS[EOS]] and len(units) <= sentence.longest + 1:
                words = tuple(units[:-1])
                ended.setdefault(words, Candidate(words, log_prob, weights))
            elif not at_limit:
                return []
            else:
                first = tuple(units[: sentence.longest])
                cut.setdefault(first, Candidate(first, log_prob, weights, complete=False))
        return list((ended or (cut if accept_cut else {})).values())

    def rescore(self, batch: Sequence[BoundedSource], lists: Sequence[Sequence[Candidate]]) -> None:
        """Compute log p of all candidates again, in place. `lists`: the candidates of each sentence."""
        rows = [
            (sentence.source, candidate)
            for sentence, candidates in zip(batch, lists, strict=True)
            for candidate in candidates
        ]
        scores = self.translator.score([(source, candidate.units) for source, candidate in rows])
        for (_, candidate), values in zip(rows, scores, strict=True):
            candidate.log_prob = math.fsum(values)

    def rank(self, candidates: Sequence[Candidate]) -> list[FinishedHypothesis]:
        """Rank candidates by log p, normalized as set; returns at most the beam size, best first."""
        rank = length_normalizer(self.config.normalize)
        scores = [rank(candidate.log_prob, len(candidate.units) + 1) for candidate in candidates]
        order = sorted(range(len(candidates)), key=lambda index: -scores[index])[: self.config.beam_size]
        return [self.hypothesis(candidates[index], scores[index]) for index in order]

    def hypothesis(self, candidate: Candidate, score: float) -> FinishedHypothesis:
        """Convert a candidate from units to ids. `score`: by which it is ranked."""
        ids, special = self.target_words.ids, {SPECIALS[BOS]: BOS, SPECIALS[UNK]: UNK}
        return FinishedHypothesis(
            words=[ids[unit] if unit in ids else special[unit] for unit in candidate.units],
            log_prob=candidate.log_prob,
            score=score,
            complete=candidate.complete,
            looked_at=[
                max(range(len(weights)), key=weights.__getitem__)
                for _, weights in zip(candidate.units, candidate.attention, strict=False)
            ],
        )


def check_positions(sentences: Iterable[BoundedSource], frame: Frame) -> None:
    """DataError for a sentence, or a bound of its translation, beyond the positions of the model."""
    for sentence in sentences:
        if len(sentence.source) > frame.source_room or sentence.longest > frame.target_room:
            length = max(len(sentence.source), sentence.longest)
            raise DataError(
                f"a sentence of {length:,} units, or a translation as long: the model has "
                f"{frame.positions:,} positions; lower --max-line-words or --max-length"
            )


def batches(sentences: Sequence[BoundedSource], order: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Yield the indices of the sentences of each call: at most `size`, all of one group. `order`: indices of
    the sentences to search, sorted by group."""
    for _, group in groupby(order, lambda index: sentences[index].group):
        indices = list(group)
        yield from (indices[start : start + size] for start in range(0, len(indices), size))


# ---- sampling ----------------------------------------------------------------------------------------------


def sample(
    translator: FramedTranslator, source: Sequence[str], words: Vocab, config: SamplingConfig, number: int
) -> list[FinishedHypothesis]:
    """Draw translations of sentence `number` of the whole input, with the random numbers that
    nmt/search/sampling.py uses for it. CTranslate2's own samples depend on earlier ones, so it only computes
    log p of the next unit, which is then drawn here. `source`: units; `words`: the target vocabulary.
    DataError for a sentence that is too long."""
    import numpy as np

    longest = max(1, math.ceil(config.max_length_factor * len(source)))
    check_positions([BoundedSource(source, longest)], translator.frame)
    uniform = np.random.default_rng([config.seed, number]).random((longest, config.samples))
    unwritten = [words.ids[unit] for unit in translator.frame.unwritten if unit in words.ids]
    banned = {*([] if config.allow_unknown else [UNK]), BOS, *unwritten}
    drawn = [FinishedHypothesis(words=[], log_prob=0.0, score=0.0) for _ in range(config.samples)]
    live = list(range(config.samples))
    for step in range(longest + 1):
        prefixes = [words.decode(drawn[index].words) for index in live]
        ending = []
        for start in range(0, len(live), config.rows):
            rows = live[start : start + config.rows]
            log_probs = translator.next_log_probs(source, prefixes[start : start + config.rows], words)
            tempered = log_probs / config.temperature
            tempered[:, sorted(banned)] = -math.inf
            tempered = truncate(tempered, config.top_k, config.top_p)
            sums = np.exp(tempered - tempered.max(1, keepdims=True)).cumsum(1)
            for row, index in enumerate(rows):
                word = EOS
                if step < longest:
                    bound = uniform[step, index] * sums[row, -1]
                    word = min(int(np.searchsorted(sums[row], bound, side="right")), sums.shape[1] - 1)
                drawn[index].log_prob += float(log_probs[row, word])
                if word == EOS:
                    drawn[index].complete = step < longest
                    ending.append(index)
                else:
                    drawn[index].words.append(word)
        live = [index for index in live if index not in set(ending)]
        if not live:
            break
    for hypothesis in drawn:
        hypothesis.score = hypothesis.log_prob
    return drawn


def truncate(log_probs: "NDArray[np.float64]", top_k: int, top_p: float) -> "NDArray[np.float64]":
    """Leave only the likeliest words, as `truncate` of nmt/search/sampling.py does: (R, V) -> (R, V)"""
    import numpy as np

    if top_k:
        rank = max(0, log_probs.shape[1] - top_k)
        least = np.partition(log_probs, rank, axis=1)[:, rank, None]
        log_probs = np.where(log_probs < least, -math.inf, log_probs)
    if top_p < 1:
        p = np.exp(log_probs - log_probs.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        ordered = -np.sort(-p, axis=1)
        last = np.minimum((ordered.cumsum(1) < top_p).sum(1, keepdims=True), p.shape[1] - 1)
        log_probs = np.where(p < np.take_along_axis(ordered, last, 1), -math.inf, log_probs)
    return log_probs


# ---- runs --------------------------------------------------------------------------------------------------


class ExportedRun(Run):
    """A run that CTranslate2 computes instead of torch."""

    members: list[ExportedPair]

    def __init__(
        self, member: ExportedPair, translator: FramedTranslator, unknown: Lexicon | None = None
    ) -> None:
        self.members, self.translator, self.unknown = [member], translator, unknown

    @staticmethod
    def of(
        *directories: str | Path, which: str = "best", device: str = "cpu", threads: int = 0
    ) -> "ExportedRun":
        """Load one exported run. ConfigError for another checkpoint than `best`; other errors as from
        `load_pair` and `load_translator`."""
        if which != "best":
            raise ConfigError(
                f"{directories[0]}: has the exported weights only, not those of {which!r}; export that "
                "checkpoint"
            )
        directory = run_directory.resolve(directories[0])
        pair = load_pair(directory)
        return ExportedRun(pair, load_translator(directory, pair.settings.frame, device, threads))

    @staticmethod
    def set_up(directory: str | Path, device: str) -> None:
        """Nothing needs to be set up."""

    def view(self, members: Sequence[LanguagePair], unknown: Lexicon | None) -> Self:
        return type(self)(cast(ExportedPair, members[0]), self.translator, unknown)

    @property
    def attends(self) -> bool:
        return True

    def read(self, line: str) -> list[str]:
        """The units of a line, UNK for those outside the vocabulary."""
        words = self.members[0].source_words
        return words.decode(words.encode(self.members[0].source.units(line)))

    def maker(
        self, constraints: "Constraints", rows: "Iterable[tuple[str, str, str]] | None" = None
    ) -> "ConstraintMaker":
        self.refuse("constraints")

    def shortlisted(self, lexicon: Lexicon, frequent: int = FREQUENT) -> "ExportedRun":
        self.refuse("short-lists")

    def refuse(self, what: str) -> NoReturn:
        """ConfigError for a feature that CTranslate2 does not support."""
        raise ConfigError(
            f"{self.members[0].directory}: is exported to CTranslate2, which has no {what}; use the run "
            "itself"
        )

    def search_readings(
        self,
        readings: Sequence[Sequence[str]],
        config: BeamConfig,
        prefixes: Sequence[Sequence[int]] | None,
        constraints: "Sequence[LineConstraints] | None",
        attention: bool,
    ) -> list[list[FinishedHypothesis]]:
        if config.ended == REFILL:
            self.refuse("--ended refill")
        words = self.members[0].target_words
        room = self.translator.frame.target_room
        starts = [words.decode(prefix) for prefix in prefixes] if prefixes else [[] for _ in readings]
        sentences = [
            BoundedSource(
                source=reading,
                longest=min(max(config.longest(len(reading)), len(start)), room),
                shortest=config.shortest(len(reading)),
                prefix=start,
            )
            for reading, start in zip(readings, starts, strict=True)
        ]
        return Search(self.translator, words, config, attention).run(sentences)

    def unit_scores(self, pairs: Sequence[tuple[str, ...]]) -> list[list[float]]:
        member = self.members[0]
        texts = [
            (self.read(source), member.target_words.decode(self.target_ids(target)))
            for source, target in pairs
        ]
        check_positions(
            (BoundedSource(source, len(target)) for source, target in texts), self.translator.frame
        )
        return self.translator.score(texts)

    def draw(self, reading: Sequence[str], config: SamplingConfig, number: int) -> list[FinishedHypothesis]:
        return sample(self.translator, reading, self.members[0].target_words, config, number)
