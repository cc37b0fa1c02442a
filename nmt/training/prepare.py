"""Makes text pipelines, vocabularies, binarized corpus and development set from the files of a
configuration."""

import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self

import numpy as np

from nmt.compute.resources import bounded_threads
from nmt.data import corpus as corpora
from nmt.data import running
from nmt.data.batches import Cut, Ids
from nmt.data.binarized import BinarizeReport, Corpus, binarize, open_corpus, read_stamp
from nmt.data.corpus import DataConfig, Pair, make_stamp, table_pairs
from nmt.data.tokenized import ListedText, TokenizedText
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.io.locks import locked
from nmt.io.progress import Progress
from nmt.metrics import References
from nmt.runs.run import LineLengths
from nmt.text import scripts, truecase
from nmt.text.pipeline import SideConfig, TextPipeline, reads_raw, subword_kind
from nmt.text.subwords import NONE, SUBWORDS, LearnSettings, Sampler, Subwords, TrainingText
from nmt.text.subwords.bpe import BPE
from nmt.text.vocab import UNK, Vocab
from nmt.training.config import TOKENIZED
from nmt.training.validation import DevSet

log = logging.getLogger(__name__)

Pipelines = tuple[TextPipeline, TextPipeline]
Vocabs = tuple[Vocab, Vocab]

UNKNOWN = 0.1  # share of unknown words above which a warning is logged; Cho et al. 2014a have 0.07


@dataclass(frozen=True)
class ParallelData:
    """The parallel texts of a training job, and how their lines are converted to ids."""

    config: DataConfig
    pipelines: Pipelines
    vocabs: Vocabs
    text: TokenizedText  # the training text
    cache: Path  # the folder of the binarized pairs
    thorough: bool = True  # whether `open_corpus` checks all ids and checksums


def training_text(config: DataConfig, folder: Path | None = None, show_bar: bool = False) -> TokenizedText:
    """The training text that a configuration names: of a translator, a language model, or a phrase table.
    `folder`: of its temporary file, if the folder exists; `show_bar`: show a progress bar."""
    paths = [config.train_source, config.train_target, config.train_text, config.phrase_table]
    listed = ListedText(config.corpora) if config.corpora else None
    return TokenizedText(
        [path for path in paths if path], bounded_threads(config.workers), folder, show_bar, listed
    )


def make_sides(config: DataConfig, text: TokenizedText | None = None) -> tuple[Pipelines, Vocabs]:
    """Create text pipelines and vocabularies; whatever is not given (truecase models, subwords, vocabularies)
    is learned from the training text. `text`: the training text, which stores its words for `make_corpus`.
    ConfigError for settings that contradict each other, DataError for a file that is missing or malformed."""
    text = text or training_text(config)
    source, target = sides = [LearningSide.of(name, config) for name in ("source", "target")]
    pipelines = source.pipeline, target.pipeline
    if any(pipeline.tokenizer.case == "truecase" for pipeline in pipelines) and config.phrase_table:
        raise ConfigError(
            "data.source.case, data.target.case: truecase is learned from parallel text, and a phrase table "
            "holds words as they are; use keep"
        )
    learn_case(pipelines, text)
    for pair in training_pairs(config, pipelines, text):
        for side, words in zip(sides, pair, strict=True):
            side.text.add(words)
    learn_subwords(config, source, target, show_bar=text.show_bar)
    counts = unit_counts(source, config), unit_counts(target, config)
    return pipelines, make_vocabs(config, pipelines, counts)


def training_pairs(config: DataConfig, pipelines: Pipelines, text: TokenizedText) -> Iterator[Pair]:
    """Yield the training pairs as words, before subwords. DataError for malformed text or tables."""
    if config.phrase_table:
        return text.show_progress(table_pairs(config), "pairs", "reading")
    return ((words, target_words) for words, target_words in text.words(*pipelines))


def learn_case(pipelines: Sequence[TextPipeline], text: TokenizedText) -> None:
    """Learn truecase models from the tokenized training text, and set them in the pipelines that need one."""
    for number, pipeline in enumerate(pipelines):
        if pipeline.tokenizer.case == "truecase":
            pipeline.tokenizer.truecaser = truecase.Truecaser()  # an empty one changes nothing
            lines = (pipeline.finish_words(row[number]) for row in text.split(*pipelines))
            pipeline.tokenizer.truecaser = truecase.learn(lines)


def make_vocabs(
    config: DataConfig, pipelines: Pipelines, counts: tuple[Counter[str], Counter[str]]
) -> Vocabs:
    """Make the vocabulary of each side or, with shared_vocabulary, one for both sides together. `counts`: of
    the units of source and target in the training text."""
    if not config.shared_vocabulary:
        source, target = (
            make_vocab(side, pipeline, count, name)
            for side, pipeline, count, name in zip(
                (config.source, config.target), pipelines, counts, ("source", "target"), strict=True
            )
        )
        return source, target
    both = make_vocab(config.target, pipelines[1], counts[0] + counts[1], "shared")
    return both, both


def make_cut(data: ParallelData) -> Cut | None:
    """Create the function that segments words anew each time that training reads them, see `BatchStream`;
    None without sampling. ConfigError as from `check_sampling`."""
    config, pipelines, vocabs = data.config, data.pipelines, data.vocabs
    check_sampling(config, [pipeline.subwords for pipeline in pipelines])
    samplers = [make_sampler(config, *side) for side in zip(pipelines, vocabs, strict=True)]
    if not any(samplers):
        return None

    tags = {vocabs[0].ids[tag] for tag in config.tags}

    def cut(ids: Ids, target_ids: Ids, key: str) -> tuple[Ids, Ids]:
        has_tag = len(ids) > 0 and ids[0] in tags
        source, target = (
            sampler(np.asarray(units).tolist(), f"{key} {name}") if sampler else units
            for sampler, units, name in zip(
                samplers, (ids[1:] if has_tag else ids, target_ids), ("source", "target"), strict=True
            )
        )
        return [ids[0], *source] if has_tag else source, target

    return cut


def make_vocab(side: SideConfig, pipeline: TextPipeline, units: Counter[str], name: str) -> Vocab:
    """Make the vocabulary of a side: that of its file, or the most frequent units; with SentencePiece, all
    units. Logs its coverage of the text, as a warning if that is low. `units`: counts in the training text;
    `name`: of the side, for the log. DataError for a file that is missing or malformed."""
    if side.vocab_file:
        return Vocab.load(side.vocab_file)
    if pipeline.raw:
        return Vocab(units, len(units))
    vocab = Vocab(units, side.vocabulary, side.min_count)
    poor = 1 - vocab.coverage() > UNKNOWN
    log.log(
        logging.WARNING if poor else logging.INFO,
        "%s vocabulary: %s of %s, %.2f%% of the running text%s",
        name, f"{vocab.word_count:,}", f"{len(vocab.counts):,}", 100 * vocab.coverage(),
        f"; all other words are UNK: {remedy(pipeline)}" if poor else "",
    )  # fmt: skip
    return vocab


def make_corpus(data: ParallelData) -> Corpus:
    """Open the binarized training pairs. They are written again only if a file, the vocabularies, or settings
    that they depend on have changed. DataError for text that is malformed, and for a corpus of which no pair
    is left."""
    config, text, stamp = data.config, data.text, make_stamp(data.config, *data.vocabs)
    with lock_cache(data.cache):
        if read_stamp(data.cache).get("stamp") != stamp:
            source, target = data.pipelines
            pairs = (
                (source.cut(words), target.cut(target_words))
                for words, target_words in add_tags(
                    config, training_pairs(config, data.pipelines, text), text
                )
            )
            numbered = text.show_progress(pairs, "pairs", "numbering the words")
            sizes = text.listed.sizes if text.listed else ()
            report = binarize(numbered, *data.vocabs, data.cache, config.max_length, stamp, sizes)
            report_pairs(report, config.max_length)
        corpus = open_corpus(data.cache, *map(len, data.vocabs), thorough=data.thorough)
    paths = [part.source for part in config.corpora] or [config.train_source or config.phrase_table]
    for path, size in zip(paths, corpus.parts or [len(corpus)], strict=True):
        if not size:
            raise DataError(f"{path}: no pair is left to train on; is data.max_length too small?")
    return corpus


def add_tags(config: DataConfig, pairs: Iterator[Pair], text: TokenizedText) -> Iterator[Pair]:
    """Put the tag of its corpus before each source that has words; without `data.corpora`, pairs stay as they
    are. `pairs`: all pairs of `text`, whose `listed` has the number of pairs of each corpus."""
    if not text.listed:
        yield from pairs
        return
    for corpus, size in zip(config.corpora, text.listed.sizes, strict=True):
        start = [corpus.tag] if corpus.tag else []
        for words, target_words in islice(pairs, size):
            yield start + words if words else words, target_words


def epoch_counts(config: DataConfig, corpus: Corpus) -> list[int]:
    """Compute and log how many pairs of each corpus an epoch has; empty for a single corpus."""
    if not config.corpora:
        return []
    counts = corpora.epoch_counts(corpus.parts, config.corpora, config.temperature)
    for part, size, count in zip(config.corpora, corpus.parts, counts, strict=True):
        log.log(
            logging.INFO if count else logging.WARNING,
            "corpus %s%s: %s pairs; an epoch takes %s, %.1f%% of its pairs, each %.2f times",
            part.title, f" {part.tag}" if part.tag else "", f"{size:,}", f"{count:,}",
            100 * count / sum(counts), count / size,
        )  # fmt: skip
    return counts


def report_pairs(report: BinarizeReport, max_length: int) -> None:
    """Log which training pairs were kept: a warning if most are too long."""
    most = 0 < report.kept < report.too_long  # without any pair training is refused
    log.log(
        logging.WARNING if most else logging.INFO,
        "training pairs: %s kept, %s longer than %d units dropped, %s with an empty side dropped%s",
        f"{report.kept:,}", f"{report.too_long:,}", max_length, f"{report.empty:,}",
        "; raise data.max_length to keep more" if most else "",
    )  # fmt: skip


def lock_cache(cache: Path) -> AbstractContextManager[None]:
    """Context that locks a cache while it is built or opened, since several trainings may share it; waits for
    another holder. A read-only cache needs no lock."""
    if cache.exists() and not os.access(cache, os.W_OK):
        return nullcontext()
    return locked(cache, "nmt-train", wait=True)


def make_dev(data: ParallelData, bleu_tokenizer: str) -> DevSet | None:
    """Read the development pairs of a translator, and log how many of their words are unknown; None without a
    development set. `bleu_tokenizer`: a tokenizer of sacreBLEU, or TOKENIZED. ConfigError for a tokenizer
    that cannot be used, DataError for files that cannot be read or have unequal lengths."""
    config, pipelines, vocabs = data.config, data.pipelines, data.vocabs
    if not config.dev_source:
        return None
    pairs, sources, references = [], list[list[Ids]](), []
    tokenized = bleu_tokenizer == TOKENIZED
    lengths = LineLengths([pipelines[0]], config.max_length)
    for line, target_line in files.parallel(config.dev_source, config.dev_target):
        words = pipelines[1].words(target_line)
        ids = vocabs[0].encode(pipelines[0].units(line))
        references.append(" ".join(words) if tokenized else target_line)
        pairs.append((ids, vocabs[1].encode(pipelines[1].cut(words))))
        parts = [line] if tokenized else lengths.parts(line, lengths.limit())
        sources.append([ids] if parts == [line] else [vocabs[0].encode(pipelines[0].units(p)) for p in parts])
    report_dev([ids for ids, _ in pairs], [ids for _, ids in pairs], pipelines)
    tags = {vocabs[0].ids[tag] for tag in config.tags}
    all_tagged = bool(config.corpora) and all(part.tag for part in config.corpora)
    if all_tagged and not any(tags & {*ids[:1]} for ids, _ in pairs):
        log.warning("%s: no line begins with a tag, but all training text has one", config.dev_source)
    return DevSet(
        pairs=list(pairs),
        sources=sources,
        references=References(references, "none" if tokenized else bleu_tokenizer),
        target=pipelines[1],
        target_vocab=vocabs[1],
        tokenized=tokenized,
    )


def report_dev(sources: Sequence[list[int]], targets: Sequence[list[int]], pipelines: Pipelines) -> None:
    """Log the share of unknown units in the development pairs, given as ids; warn if it is large."""
    source, target = unknown_share(sources), unknown_share(targets)
    log.info("development pairs: %s, %.2f%% of the target words unknown", f"{len(sources):,}", 100 * target)
    warn_of_unknown("source", source, pipelines[0])
    warn_of_unknown("target", target, pipelines[1])


def unknown_share(texts: Sequence[list[int]]) -> float:
    """The share of UNK among the ids of sentences."""
    return sum(ids.count(UNK) for ids in texts) / max(1, sum(map(len, texts)))


def warn_of_unknown(side: str, share: float, pipeline: TextPipeline) -> None:
    """Warn if more than UNKNOWN of the development units are unknown. `side`: source, target or text."""
    if share > UNKNOWN:
        log.warning("development %s: %.2f%% are unknown: %s", side, 100 * share, remedy(pipeline))


def remedy(pipeline: TextPipeline) -> str:
    """Suggest settings that reduce unknown words, for a warning."""
    if pipeline.subwords or pipeline.characters:
        return "is the text of this language, and the vocabulary that of these units?"
    return "cut words into units, with data.bpe_merges=8000 or subword: unigram"


def make_text(config: DataConfig, text: TokenizedText) -> tuple[TextPipeline, Vocab]:
    """Create the pipeline and vocabulary of a language model; what is not given as a file is learned from the
    training text, `text`, which stores its words for `vocabulary_units` and `make_running`. ConfigError for
    settings that contradict each other."""
    side = LearningSide.of("target", config)
    learn_case([side.pipeline], text)
    for (words,) in text.words(side.pipeline):
        side.text.add(words)
    learn_subwords(config, side, show_bar=text.show_bar)
    return side.pipeline, make_vocab(config.target, side.pipeline, unit_counts(side, config), "text")


def vocabulary_units(pipeline: TextPipeline, vocab: Vocab, text: TokenizedText) -> Iterator[list[str]]:
    """Yield the units of each line of the training text, leaving out those that are not in the vocabulary."""
    for (words,) in text.words(pipeline):
        yield [unit for unit in pipeline.cut(words) if unit in vocab.ids]


def make_running(
    config: DataConfig,
    cache: Path,
    pipeline: TextPipeline,
    vocab: Vocab,
    text: TokenizedText,
    thorough: bool,
) -> Corpus:
    """Open the binarized training text of a language model. It is written to `cache` again only if the file,
    the vocabulary, or settings that it depends on have changed. `text`: the training text, which may hold its
    words already; `thorough`: as for `open_corpus`. DataError for text that is malformed."""
    stamp = running.make_stamp(config, vocab)
    with lock_cache(cache):
        if read_stamp(cache).get("stamp") != stamp:
            lines = (pipeline.cut(words) for (words,) in text.words(pipeline))
            numbered = text.show_progress(lines, "lines", "numbering the words")
            report = running.binarize(numbered, vocab, cache, stamp)
            log.info("training text: %s sentences", f"{report.kept:,}")
        return open_corpus(cache, len(vocab), thorough=thorough)


def make_dev_text(config: DataConfig, pipeline: TextPipeline, vocab: Vocab) -> Corpus | None:
    """Read the development text of a language model, and log how many of its units are unknown; None without
    one. DataError for a file that cannot be read."""
    if not config.dev_text:
        return None
    texts = [vocab.encode(pipeline.units(line)) for line in files.read_lines(config.dev_text)]
    unknown = unknown_share(texts)
    log.info("development text: %s sentences, %.2f%% of the units unknown", f"{len(texts):,}", 100 * unknown)
    warn_of_unknown("text", unknown, pipeline)
    return running.as_corpus(texts)


# ---- subwords ----------------------------------------------------------------------------------------------
# Subwords are learned from the training text; with sampling, words are segmented anew in each epoch.


RATES = {  # sampling rates, keys of `data` (`rate_key` of Subwords) -> the setting that they need
    "bpe_dropout": "data.bpe_merges, or codes",
    "unigram_sampling": "data.source.subword or data.target.subword to unigram",
}


@dataclass
class LearningSide:
    """A side of the training text for which subwords are learned."""

    name: str  # source or target
    config: SideConfig
    kind: str  # kind of subwords, or `none`
    pipeline: TextPipeline
    text: TrainingText  # filled by the caller of `of`; `learn_subwords` learns from it

    @classmethod
    def of(cls, name: str, data: DataConfig) -> Self:
        """Create a side of `data`, `name` being source or target, without reading its text. ConfigError,
        naming the side, for settings that contradict each other; DataError for a file of subwords that is
        malformed."""
        config = data.source if name == "source" else data.target
        try:
            kind = subword_kind(config, data.bpe_merges)
            pipeline = TextPipeline.of(config, data.bpe_merges)
        except ConfigError as error:
            raise ConfigError(f"data.{name}: {error}") from error
        return cls(name, config, kind, pipeline, TrainingText(reads_raw(kind)))


def check_sides(data: DataConfig, *sides: LearningSide) -> None:
    """Check the subword settings before any text is read. ConfigError if they contradict each other."""
    bpe_sides = [side for side in sides if side.kind == BPE.kind]
    if data.bpe_merges and any(side.pipeline.subwords for side in bpe_sides):
        raise ConfigError(
            "data.bpe_merges and source.codes / target.codes exclude each other: learn codes here, or give "
            "them"
        )
    if data.bpe_merges and any(side.pipeline.characters for side in sides):
        raise ConfigError("data.bpe_merges: characters are not subwords; leave out one of the two")
    if data.bpe_merges and not bpe_sides:
        raise ConfigError(
            f"data.bpe_merges: no side has BPE: {', '.join(f'{side.name} {side.kind}' for side in sides)}; "
            "leave it out, or set data.source.subword or data.target.subword to bpe"
        )
    check_sampling(data, [SUBWORDS[side.kind] for side in sides if side.kind != NONE])


def learn_subwords(data: DataConfig, *sides: LearningSide, show_bar: bool = False) -> None:
    """Learn the subwords that are not given as files, and set them in the pipelines of these sides.
    `show_bar`: show a progress bar. ConfigError for settings that contradict each other."""
    check_sides(data, *sides)
    waiting = [side for side in sides if side.kind != NONE and side.pipeline.subwords is None]
    groups = [waiting] if len(waiting) > 1 and is_joint(data, *waiting) else [[side] for side in waiting]
    for group in groups:
        learn(data, group, show_bar)


def learn(data: DataConfig, sides: Sequence[LearningSide], show_bar: bool) -> None:
    """Learn the subwords for one side, or for both sides together, and set them in their pipelines. `sides`:
    one or two, of the same kind. ConfigError for a setting that does not suit the text."""
    text = sides[0].text if len(sides) == 1 else sides[0].text + sides[1].text
    names = " and ".join(side.name for side in sides)
    with Progress(data.bpe_merges, "merges", show_bar, f"learning {sides[0].kind}") as progress:
        settings = LearnSettings(
            merges=data.bpe_merges,
            pieces=data.pieces,
            byte_fallback=data.byte_fallback,
            unicode=sides[0].config.unicode,
            observe=progress.over,
        )
        try:
            learned = SUBWORDS[sides[0].kind].learn(text, settings)
        except ConfigError as error:
            raise ConfigError(f"data.{error}") from error
    log.info("%s subwords: %s, %s from %s", names, sides[0].kind, learned.summary, text.summary)
    for side in sides:
        side.pipeline.subwords = learned


def is_joint(data: DataConfig, source: LearningSide, target: LearningSide) -> bool:
    """Whether one set of subwords is learned for both sides together: with data.bpe_joint, if both have the
    same kind of subwords and the same Unicode normalization. Subwords that are learned from sentences
    (SentencePiece) also need a shared vocabulary, or texts in the same script."""
    if not data.bpe_joint or source.kind != target.kind or source.config.unicode != target.config.unicode:
        return False
    if data.shared_vocabulary or not source.text.sentences:
        return True
    source_script, target_script = (
        scripts.script_of_text(side.text.characters()) for side in (source, target)
    )
    return source_script == target_script


def unit_counts(side: LearningSide, data: DataConfig) -> Counter[str]:
    """Count the units of a side in the training text. Units that the text lacks get a count of 1 if the
    side's subwords want an id for them, see `Subwords.inventory`."""
    subwords = side.pipeline.subwords
    if not side.text.sentences:
        counts = side.pipeline.unit_counts(side.text.words)
    else:
        counts = Counter(unit for line in side.text.lines for unit in side.pipeline.cut(line.split(" ")))
    if subwords:
        for unit in subwords.inventory(side.text.characters(), sampling_rate(data, side.pipeline) > 0):
            counts[unit] = max(1, counts[unit])
    return counts


def sampling_rate(data: DataConfig, pipeline: TextPipeline) -> float:
    """Sampling rate of the segmentation in training; 0 if it does not vary."""
    return float(getattr(data, pipeline.subwords.rate_key)) if pipeline.subwords else 0.0


def make_sampler(data: DataConfig, pipeline: TextPipeline, vocab: Vocab) -> Sampler | None:
    """Create the sampler that splits the sentences of a side anew in each epoch; None without sampling."""
    rate, subwords = sampling_rate(data, pipeline), pipeline.subwords
    return subwords.sampler(rate, vocab) if rate and subwords else None


def check_sampling(data: DataConfig, used: Sequence[Subwords | type[Subwords] | None]) -> None:
    """ConfigError for a sampling rate that none of the subwords in use (`used`) supports."""
    keys = {item.rate_key for item in used if item}
    for key, requirement in RATES.items():
        if getattr(data, key) and key not in keys:
            raise ConfigError(
                f"data.{key}: there is nothing to {'drop' if key == 'bpe_dropout' else 'sample'} without "
                f"subwords; set {requirement}"
            )
