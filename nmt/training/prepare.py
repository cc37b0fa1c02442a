"""From the files of a configuration to text pipelines, vocabularies, binarized corpus and development set;
and stamps of these files, so that a run goes on with the same ones."""

import json
import logging
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path

import numpy as np

from nmt.compute.resources import bounded_threads
from nmt.data import corpus as corpora
from nmt.data import running
from nmt.data.batches import Cut, Ids
from nmt.data.binarized import BinarizeReport, binarize, open_corpus, read_stamp
from nmt.data.corpus import ALIGNMENTS, VECTORS, Corpus, DataConfig, Pair, make_stamp, table_pairs
from nmt.data.tokenized import ListedText, TokenizedText
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.io import files, manifest
from nmt.io.locks import locked
from nmt.metrics import References
from nmt.runs import directory as run_directory
from nmt.runs.directory import INPUTS
from nmt.runs.run import LineLengths
from nmt.text import truecase
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.vocab import UNK, Vocab
from nmt.training.config import TOKENIZED, RunConfig, check_languages, get_value, side_paths, text_sides
from nmt.training.subwords import (
    LearningSide,
    check_sampling,
    check_sides,
    learn_subwords,
    make_sampler,
    unit_counts,
)
from nmt.training.validation import DevSet

log = logging.getLogger(__name__)


# ---- files that a training reads ---------------------------------------------------------------------------
# None lies in the run that it makes, and the run is resumed with the same ones or not at all.


STAMPED_KEYS = (
    "train_source", "train_target", "phrase_table", "dev_source", "dev_target", "train_text", "dev_text",
    *ALIGNMENTS, *VECTORS,
)  # fmt: skip


def named_files(config: DataConfig) -> Iterator[tuple[str, str]]:
    """Key and path of the regular files that a configuration names; nothing can be said of pipes."""
    values = [(item.name, getattr(config, item.name)) for item in fields(config) if item.name in STAMPED_KEYS]
    for key, path in (*values, *listed_files(config)):
        if path and path != "-" and (not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode)):
            yield key, path


def listed_files(config: DataConfig) -> Iterator[tuple[str, str]]:
    """Key and path of the files of the corpora of a list."""
    for index, corpus in enumerate(config.corpora):
        yield f"corpora[{index}].source", corpus.source
        yield f"corpora[{index}].target", corpus.target


def take_stamps(config: DataConfig) -> dict[str, manifest.Stamp]:
    """Stamps of all of them, by key."""
    return {key: manifest.stamp(path) for key, path in named_files(config)}


def save_stamps(stamps: dict[str, manifest.Stamp], new: Path) -> None:
    """Write them into a folder."""
    files.write_text(new / INPUTS, [json.dumps(stamps, indent=1)])


def check_inputs(config: DataConfig, directory: Path) -> None:
    """DataError for a file that has changed since the run was started."""
    inputs_path = directory / INPUTS
    try:
        with manifest.opened(directory, INPUTS, manifest.load(directory)) as stream:
            recorded = dict(json.load(stream))
        changed = [
            (key, path)
            for key, path in named_files(config)
            if key in recorded and not manifest.unchanged(path, recorded[key])
        ]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{inputs_path}: damaged; copy it again") from error
    for key, path in changed:
        raise DataError(
            f"{path}: has changed since {directory} was started with it (data.{key}); bring it back, or "
            "start another run"
        )


SIDE_FILES = ("vocab_file", "codes")
PATH_KEYS = (
    "init_from", "data.train_source", "data.train_target", "data.phrase_table", "data.dev_source",
    "data.dev_target", "data.train_text", "data.dev_text",
    *(f"data.{key}" for key in (*ALIGNMENTS, *VECTORS)),
    *(f"data.{side}.{key}" for side in ("source", "target") for key in SIDE_FILES),
)  # fmt: skip


def check_new_run(config: RunConfig, config_path: str) -> None:
    """Before a run is made: nothing that is read lies in its folder, its languages are known, the run that it
    starts from is there. `given`: the file of the configuration; empty where there is none.

    ConfigError or CheckpointError before any work.
    """
    if config.init_from:
        run_directory.check_version(run_directory.resolve(config.init_from))
    read = {"CONFIG.yaml": config_path, **{key: str(get_value(config, key)) for key in PATH_KEYS}}
    read |= {f"data.{key}": path for key, path in listed_files(config.data)}
    for key, path in read.items():
        if path and is_inside(path, config.run):
            raise ConfigError(
                f"{key} {path}: lies in the run directory {config.run}, which this command makes; name "
                "another directory with run="
            )
    check_languages(config)
    sides = text_sides(config)
    if all(config.data.phrase_table or side_paths(config.data, name) for name in sides):
        check_sides(config.data, *(LearningSide.of(name, config.data) for name in sides))


def is_inside(path: str, folder: str) -> bool:
    """Is a path a folder, or below it, links followed?"""
    return Path(folder).resolve() in (Path(path).resolve(), *Path(path).resolve().parents)


# ---- text, ids and development set -------------------------------------------------------------------------


Pipelines = tuple[TextPipeline, TextPipeline]
Vocabs = tuple[Vocab, Vocab]

UNKNOWN = 0.1  # more unknown words than this are worth a warning; the papers have 7%


@dataclass(frozen=True)
class ParallelData:
    """The parallel texts of a training, and how their lines become ids."""

    config: DataConfig
    pipelines: Pipelines
    vocabs: Vocabs
    text: TokenizedText  # may hold the words already
    cache: Path  # the folder of the binarized pairs
    thorough: bool = True  # as for `open_corpus`


def training_text(config: DataConfig, folder: Path | None = None, show_bar: bool = False) -> TokenizedText:
    """The text that a configuration names: of a translator or a language model, or the lines of a table."""
    paths = [config.train_source, config.train_target, config.train_text, config.phrase_table]
    listed = ListedText(config.corpora) if config.corpora else None
    return TokenizedText(
        [path for path in paths if path], bounded_threads(config.workers), folder, show_bar, listed
    )


def make_sides(config: DataConfig, text: TokenizedText | None = None) -> tuple[Pipelines, Vocabs]:
    """Text pipelines and vocabularies, of which is learned from the training text (truecase, subwords, words)
    what is not given. `text`: where its words are kept for `make_corpus`."""
    text = text or training_text(config)
    source, target = sides = [LearningSide.of(name, config) for name in ("source", "target")]
    pipelines = source.pipeline, target.pipeline
    if any(pipeline.tokenizer.case == "truecase" for pipeline in pipelines) and config.phrase_table:
        raise ConfigError(
            "data.source.case, data.target.case: truecase is learned from parallel text, and a phrase table "
            "holds words as they are; use keep"
        )
    learn_case(pipelines, text)
    for pair in pairs_of(config, pipelines, text):
        for side, words in zip(sides, pair, strict=True):
            side.text.add(words)
    learn_subwords(config, source, target, show_bar=text.show_bar)
    counts = unit_counts(source, config), unit_counts(target, config)
    return pipelines, make_vocabs(config, pipelines, counts)


def pairs_of(config: DataConfig, pipelines: Pipelines, text: TokenizedText) -> Iterator[Pair]:
    """The training pairs as words, before subwords."""
    if config.phrase_table:
        return text.show_progress(table_pairs(config), "pairs", "reading")
    return ((words, target_words) for words, target_words in text.words(*pipelines))


def learn_case(pipelines: Sequence[TextPipeline], text: TokenizedText) -> None:
    """Learn truecase models from the tokenized training text, for the sides that ask for one."""
    for number, pipeline in enumerate(pipelines):
        if pipeline.tokenizer.case == "truecase":
            pipeline.tokenizer.truecaser = truecase.Truecaser()  # changes nothing
            lines = (pipeline.settle(row[number]) for row in text.split(*pipelines))
            pipeline.tokenizer.truecaser = truecase.learn(lines)


def make_vocabs(
    config: DataConfig, pipelines: Pipelines, counts: tuple[Counter[str], Counter[str]]
) -> Vocabs:
    """The vocabulary of each side, or for shared_vocabulary one of both together. `counts`: of units."""
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
    """How training segments words anew each time they are seen; None: it does not."""
    config, pipelines, vocabs = data.config, data.pipelines, data.vocabs
    check_sampling(config, [pipeline.subwords for pipeline in pipelines])
    samplers = [make_sampler(config, *side) for side in zip(pipelines, vocabs, strict=True)]
    if not any(samplers):
        return None

    tags = {vocabs[0].ids[tag] for tag in config.tags}

    def cut(ids: Ids, target_ids: Ids, key: str) -> tuple[Ids, Ids]:
        tagged = len(ids) > 0 and ids[0] in tags
        source, target = (
            sampler(np.asarray(units).tolist(), f"{key} {name}") if sampler else units
            for sampler, units, name in zip(
                samplers, (ids[1:] if tagged else ids, target_ids), ("source", "target"), strict=True
            )
        )
        return [ids[0], *source] if tagged else source, target

    return cut


def make_vocab(side: SideConfig, pipeline: TextPipeline, units: Counter[str], name: str) -> Vocab:
    """The vocabulary of a side: that of its file, or the most frequent units; of SentencePiece all."""
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
    """The binarized training pairs, rebuilt only when a file, the text pipeline or a vocabulary has
    changed."""
    config, text, stamp = data.config, data.text, make_stamp(data.config, *data.vocabs)
    with lock_cache(data.cache):
        if read_stamp(data.cache).get("stamp") != stamp:
            source, target = data.pipelines
            pairs = (
                (source.cut(words), target.cut(target_words))
                for words, target_words in tagged(config, pairs_of(config, data.pipelines, text), text)
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


def tagged(config: DataConfig, pairs: Iterator[Pair], text: TokenizedText) -> Iterator[Pair]:
    """The pairs, each source with the tag of its corpus; not that of a sentence without words."""
    if not text.listed:
        yield from pairs
        return
    for corpus, size in zip(config.corpora, text.listed.sizes, strict=True):
        start = [corpus.tag] if corpus.tag else []
        for words, target_words in islice(pairs, size):
            yield start + words if words else words, target_words


def epoch_counts(config: DataConfig, corpus: Corpus) -> list[int]:
    """How many pairs of each of several corpora an epoch has, which is logged; nothing for one corpus."""
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
    """Log which training pairs were kept."""
    log.info(
        "training pairs: %s kept, %s longer than %d words dropped, %s with an empty side dropped",
        f"{report.kept:,}", f"{report.too_long:,}", max_length, f"{report.empty:,}",
    )  # fmt: skip


def lock_cache(cache: Path) -> AbstractContextManager[None]:
    """Lock a cache while it is made or opened: trainings may share it. A read-only one needs no lock."""
    if cache.exists() and not os.access(cache, os.W_OK):
        return nullcontext()
    return locked(cache, "nmt-train", wait=True)


def make_dev(data: ParallelData, bleu_tokenizer: str) -> DevSet | None:
    """The development pairs of a translator. ConfigError for a tokenizer that cannot be used."""
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
    remark_dev([ids for ids, _ in pairs], [ids for _, ids in pairs], pipelines)
    tags = {vocabs[0].ids[tag] for tag in config.tags}
    if tags and all(part.tag for part in config.corpora) and not any(tags & {*ids[:1]} for ids, _ in pairs):
        log.warning("%s: no line begins with a tag, but all training text has one", config.dev_source)
    return DevSet(
        pairs=list(pairs),
        sources=sources,
        references=References(references, "none" if tokenized else bleu_tokenizer),
        target=pipelines[1],
        target_vocab=vocabs[1],
        tokenized=tokenized,
    )


def remark_dev(sources: Sequence[list[int]], targets: Sequence[list[int]], pipelines: Pipelines) -> None:
    """Log how much of the development pairs is unknown."""
    source, target = unknown_share(sources), unknown_share(targets)
    log.info("development pairs: %s, %.2f%% of the target words unknown", f"{len(sources):,}", 100 * target)
    warn_of_unknown("source", source, pipelines[0])
    warn_of_unknown("target", target, pipelines[1])


def unknown_share(texts: Sequence[list[int]]) -> float:
    """The share of UNK among the ids of sentences."""
    return sum(ids.count(UNK) for ids in texts) / max(1, sum(map(len, texts)))


def warn_of_unknown(side: str, share: float, pipeline: TextPipeline) -> None:
    """A warning where a model cannot read, or write, much of the development text."""
    if share > UNKNOWN:
        log.warning("development %s: %.2f%% are unknown: %s", side, 100 * share, remedy(pipeline))


def remedy(pipeline: TextPipeline) -> str:
    """Settings that reduce unknown words, for a warning."""
    if pipeline.subwords or pipeline.characters:
        return "is the text of this language, and the vocabulary that of these units?"
    return "cut words into units, with data.bpe_merges=8000 or subword: unigram"


def make_text(config: DataConfig, text: TokenizedText | None = None) -> tuple[TextPipeline, Vocab]:
    """Pipeline and vocabulary of a language model, learned from its training text unless they are given.
    `text`: where its words are kept for `known_units` and `make_running`."""
    text = text or training_text(config)
    side = LearningSide.of("target", config)
    learn_case([side.pipeline], text)
    for (words,) in text.words(side.pipeline):
        side.text.add(words)
    learn_subwords(config, side, show_bar=text.show_bar)
    return side.pipeline, make_vocab(config.target, side.pipeline, unit_counts(side, config), "text")


def known_units(pipeline: TextPipeline, vocab: Vocab, text: TokenizedText) -> Iterator[list[str]]:
    """The units of each line of the training text, without those outside the vocabulary."""
    for (words,) in text.words(pipeline):
        yield [unit for unit in pipeline.cut(words) if unit in vocab.ids]


def make_running(
    config: DataConfig,
    cache: Path,
    pipeline: TextPipeline,
    vocab: Vocab,
    text: TokenizedText | None = None,
    thorough: bool = True,
) -> Corpus:
    """The binarized training text, rebuilt only when the file, the text pipeline or the vocabulary has
    changed. `text`: may hold the words already; `thorough`: as for `open_corpus`."""
    text = text or training_text(config)
    stamp = running.make_stamp(config, vocab)
    with lock_cache(cache):
        if read_stamp(cache).get("stamp") != stamp:
            lines = (pipeline.cut(words) for (words,) in text.words(pipeline))
            numbered = text.show_progress(lines, "lines", "numbering the words")
            report = running.binarize(numbered, vocab, cache, stamp)
            log.info("training text: %s sentences", f"{report.kept:,}")
        return open_corpus(cache, len(vocab), thorough=thorough)


def make_dev_text(config: DataConfig, pipeline: TextPipeline, vocab: Vocab) -> Corpus | None:
    """The development text of a language model."""
    if not config.dev_text:
        return None
    texts = [vocab.encode(pipeline.units(line)) for line in files.read_lines(config.dev_text)]
    unknown = unknown_share(texts)
    log.info("development text: %s sentences, %.2f%% of the units unknown", f"{len(texts):,}", 100 * unknown)
    warn_of_unknown("text", unknown, pipeline)
    return running.as_corpus(texts)
