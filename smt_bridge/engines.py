"""Phrase-based models and hybrid systems as engines of nmt-serve, which finds them through the entry points
`nmt.engines` of setup.cfg."""

import logging
import threading
from dataclasses import replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from nmt.errors import DataError
from nmt.runs import directory as run_directory
from nmt.runs.framed import NO_ENGINE
from nmt.serve import engine
from nmt.serve.config import EngineConfig
from nmt.serve.engine import (
    Engine,
    EngineInfo,
    FeatureInfo,
    LineHypothesis,
    Segment,
    TranslatedLine,
    TranslateOptions,
    empty_translation,
)
from smt_bridge.decoder import feature_lines, system, translation
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.decoder.system import PhraseBasedSystem
from smt_bridge.decoder.translation import Derivation, Lines, PhraseTranslation
from smt_bridge.hybrid import decoder as hybrids
from smt_bridge.hybrid import folder
from smt_bridge.hybrid.decoder import RawLines
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.reordering import ReorderingType

log = logging.getLogger(__name__)

LIST_SIZES = (20, 200)  # sizes of n-best lists tried in search of a hypothesis without avoided phrases
CAPABILITIES = (engine.N_BEST, engine.TOKENIZED, engine.ALIGNMENT, engine.SEGMENTS, engine.FEATURES)


class PhraseEngine(Engine):
    """A decoder as an engine of nmt-serve. A line that is too long for an n-best list is translated in parts
    and gets a single hypothesis."""

    def __init__(self, decoder: Decoder, info: EngineInfo, workers: int) -> None:
        self.decoder, self.info, self.workers = decoder, info, workers
        self.tokenized = Lines()

    def translate(self, line: str, options: TranslateOptions, stop: threading.Event) -> TranslatedLine:
        decoder = self.decoder
        lines = self.tokenized if options.tokenized else self.lines(options)
        marked = decoder.parse_line(line, "markup", 0, lines)
        if not marked.words:
            return empty_translation()
        if len(marked.words) > decoder.config.max_line_words:
            return self.convert(decoder.translate_line(marked, stop), lines, 1)
        listing = decoder.make_listing(options.n_best if options.n_best > 1 else 0, options.distinct)
        return self.convert(decoder.translate_part(marked, stop, listing), lines, options.n_best)

    def lines(self, options: TranslateOptions) -> Lines:
        """The converter between the text of a request and the decoder's words."""
        return self.decoder.lines

    def convert(self, result: PhraseTranslation, lines: Lines, count: int) -> TranslatedLine:
        """Convert a translation to the server's format, with at most `count` hypotheses."""
        unknown, first = list[int](), 0
        for sentence, derivation in result.searched:
            unknown += [first + index for index in unknown_words(sentence, derivation)]
            first += len(sentence.words)
        return TranslatedLine(
            words=result.source,
            hypotheses=[
                self.hypothesis(result, candidate, lines) for candidate in result.derivations[:count]
            ],
            unknown=unknown,
            parts=max(1, len(result.parts)),
        )

    def hypothesis(self, result: PhraseTranslation, derivation: Derivation, lines: Lines) -> LineHypothesis:
        values = iter(derivation.features.tolist())
        alone = PhraseTranslation(result.sentence, [derivation], result.parts)
        return LineHypothesis(
            text=lines.text(alone),
            words=derivation.text,
            score=derivation.total,
            alignment=translation.alignment(alone),
            segments=segments(alone),
            features={name: list(islice(values, size)) for name, size in self.decoder.system.sizes.items()},
        )

    def fit(self, line: str) -> float:
        """The share, 0 to 1, of the characters of the line's words that are in words for which the phrase
        table has translations. 0 for a line without words, and for a mistake in its markup."""
        try:
            words = self.decoder.lines.parse_line(line, self.decoder.markup).words
        except ValueError:
            return 0.0
        table = self.decoder.system.table
        total = sum(map(len, words))
        return sum(len(word) for word in words if table.find_rows(word)) / total if total else 0.0


class HybridEngine(PhraseEngine):
    """A hybrid system as an engine of nmt-serve. Terms of a request are added to its glossary."""

    def __init__(self, decoder: Decoder, raw: RawLines, info: EngineInfo, workers: int) -> None:
        super().__init__(decoder, info, workers)
        self.raw = raw

    def translate(self, line: str, options: TranslateOptions, stop: threading.Event) -> TranslatedLine:
        """Translate a line. The search uses no row of the phrase table that contains a phrase to avoid. Such
        a phrase may still arise from two options in a row, so hypotheses that contain one are dropped
        afterwards. DataError for terms or phrases to avoid with tokenized text, for a mistake in the markup,
        and if every hypothesis of the longest list contains one of the phrases."""
        if options.tokenized and options.constrained:
            raise DataError("terms, avoid: a hybrid system takes them with text only; leave out tokenized")
        if not options.avoid:
            return super().translate(line, options, stop)
        lines = self.lines(options)
        for count in (options.n_best, *LIST_SIZES):
            if count < options.n_best:
                continue
            result = super().translate(line, replace(options, n_best=count, distinct=True), stop)
            allowed = [
                hypothesis
                for hypothesis in result.hypotheses
                if lines.is_allowed(hypothesis.words, hypothesis.text)
            ]
            if allowed:
                return replace(result, hypotheses=allowed[: options.n_best])
        raise DataError("avoid: every translation of the line has one of these phrases; ask for less")

    def prepare(self, options: TranslateOptions) -> RawLines:
        """The converter for a request with terms and phrases to avoid. Errors as from `RawLines.extend`."""
        if not options.constrained:
            return self.raw
        return self.raw.extend(options.terms, options.avoid)

    def lines(self, options: TranslateOptions) -> RawLines:
        lines = options.prepared
        if isinstance(lines, RawLines) and lines.source is self.raw.source:
            return lines
        return self.prepare(options)


def unknown_words(sentence: Sentence, derivation: Derivation) -> list[int]:
    """The sorted positions of the source words in the sentence that the model does not know, from 0."""
    return sorted(
        int(sentence.first[option])
        for option in derivation.options
        if (extra := sentence.extra(option)) is not None and extra.unknown
    )


def segments(result: PhraseTranslation) -> list[Segment]:
    """The phrases of the best derivation in target order, with positions in the whole line. The last target
    word of a phrase without target words is the one before its first."""
    phrases, sources, targets = list[Segment](), 0, 0
    for sentence, derivation in result.searched:
        for option in derivation.options:
            size = int(sentence.length[option])
            span = (sources + int(sentence.first[option]), sources + int(sentence.last[option]))
            phrases.append(Segment(span, (targets, targets + size - 1)))
            targets += size
        sources += len(sentence.words)
    return phrases


# ---- the kinds ---------------------------------------------------------------------------------------------


class PhraseBased:
    """The kind of engine for a moses.ini or its folder. Such engines read and write tokenized text."""

    def reads(self, path: str) -> bool:
        system = Path(path)
        if folder.is_hybrid(path):
            return False
        return (system / "moses.ini").is_file() or (system.is_file() and system.suffix == ".ini")

    def needs_torch(self, path: str, config: EngineConfig) -> bool:
        return feature_lines.needs_torch(moses_ini.read(system.ini_path(path)))

    def load(self, path: str, config: EngineConfig) -> PhraseEngine:
        decoder = Decoder(system.load(path, Cache(config.cache)))
        info = EngineInfo(
            kind="phrase-based",
            description=describe_model(Path(path).name, decoder),
            capabilities=CAPABILITIES,
            tokenized_only=True,
            features=describe_features(decoder.system),
        )
        return PhraseEngine(decoder, info, config.workers)


class HybridSystem:
    """The kind of engine for the folder of a hybrid system. Such engines read and write raw text."""

    def reads(self, path: str) -> bool:
        return folder.is_hybrid(path)

    def needs_torch(self, path: str, config: EngineConfig) -> bool:
        return feature_lines.needs_torch(moses_ini.read(folder.read(Path(path)).ini))

    def more(self, path: str) -> dict[str, str]:
        """The fast model of a system, if it has one and what computes it is installed."""
        fast = folder.read(Path(path)).fast
        if fast and run_directory.is_exported(fast) and find_spec("ctranslate2") is None:
            log.warning("%s: is not served: %s", fast, NO_ENGINE)
            return {}
        return {folder.FAST: fast} if fast else {}

    def load(self, path: str, config: EngineConfig) -> PhraseEngine:
        hybrid = folder.read(Path(path))
        decoder = hybrids.make_decoder(hybrid, cache=Cache(config.cache))
        raw = hybrids.make_lines(hybrid, decoder.config.max_line_words)
        info = EngineInfo(
            kind="hybrid",
            description=describe_model(hybrid.folder.name, decoder),
            source=hybrid.config.source.language,
            target=hybrid.config.target.language,
            capabilities=(*CAPABILITIES, engine.TERMS, engine.AVOID),
            features=describe_features(decoder.system),
        )
        return HybridEngine(decoder, raw, info, config.workers)


def describe_model(name: str, decoder: Decoder) -> str:
    table = decoder.system.table
    return f"{name}: {table.rows:,} phrase pairs, features {' '.join(decoder.system.sizes)}"


# ---- features ----------------------------------------------------------------------------------------------


FEATURE_KINDS = {
    "PhraseDictionaryMemory": "phrase table", feature_lines.REORDERING: "lexical reordering",
    **dict.fromkeys(feature_lines.LANGUAGE_MODELS, "count language model"),
    feature_lines.CLASS_LM: "language model of word classes",
    "NeuralTranslation": "attention model", "OpSequenceModel": "operation sequence model",
    "NNJM": "joint model (NNJM)", "CSLM": "neural language model (CSLM)", "Distortion": "distance of jumps",
    "WordPenalty": "words, negative", "PhrasePenalty": "phrases", "UnknownWordPenalty": "unknown words",
    "WordTranslationFeature": "word translations", "TargetWordInsertionFeature": "target words without link",
    "SourceWordDeletionFeature": "source words without link", "PhraseLengthFeature": "lengths of phrases",
}  # fmt: skip
TABLE_SCORES = (
    "log p of the source phrase", "of its words, one by one",
    "log p of the target phrase", "of its words, one by one",
)  # fmt: skip
OPERATION_SCORES = ("log10 p", "gap widths", "gaps opened", "open gaps", "unlinked source words")
LM_SCORES = ("log p", "unknown words")


def describe_features(system: PhraseBasedSystem) -> tuple[FeatureInfo, ...]:
    """Describe the values of `LineHypothesis.features`."""
    kinds = {feature.name: feature.kind for feature in system.ini.features}
    rows = []
    for name, columns in system.printed.items():
        scores = score_descriptions(kinds[name], len(system.weights[name]), system.reordering)
        rows.append(
            FeatureInfo(
                name,
                FEATURE_KINDS.get(kinds[name], ""),
                tuple(scores[column] for column in columns) if scores and len(columns) > 1 else (),
                tuple(system.weights[name][column] for column in columns),
            )
        )
    return tuple(rows)


def score_descriptions(kind: str, count: int, reordering: ReorderingType) -> list[str]:
    """Descriptions of the `count` scores of a feature of kind `kind`; empty if there are none. Table columns
    beyond those of Moses are numbered. `reordering`: the type of the reordering model."""
    if kind == "PhraseDictionaryMemory" and count >= len(TABLE_SCORES):
        return [*TABLE_SCORES, *(f"column {number}" for number in range(len(TABLE_SCORES) + 1, count + 1))]
    if kind == feature_lines.REORDERING:
        return reordering.descriptions
    if kind == "OpSequenceModel" and count == len(OPERATION_SCORES):
        return list(OPERATION_SCORES)
    return list(LM_SCORES) if kind in feature_lines.LANGUAGE_MODELS and count == len(LM_SCORES) else []
