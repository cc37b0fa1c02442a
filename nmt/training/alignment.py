"""Parallel text with its word alignment, as the training of an aligned model and guided alignment read it."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, compress, islice, repeat, zip_longest
from typing import NamedTuple

from nmt.data.affiliation import AlignedPair, affiliate_pair
from nmt.data.batches import BatchStream, GuidedStream, unit_links
from nmt.data.binarized import (
    BinarizeReport,
    Corpus,
    binarize_aligned,
    is_kept,
    open_corpus,
    read_stamp,
    store,
)
from nmt.data.corpus import (
    ALIGNMENTS,
    DataConfig,
    aligned_stamp,
    check_config,
    check_pairs,
    check_text_file,
)
from nmt.data.tokenized import TokenizedText
from nmt.errors import ConfigError, DataError
from nmt.formats import pharaoh
from nmt.formats.pharaoh import Links
from nmt.io import files
from nmt.runs.directory import LINKS
from nmt.text.pipeline import SideConfig, TextPipeline, subword_kind
from nmt.text.subwords import NONE
from nmt.training.prepare import RATES, LearningSide, ParallelData, lock_cache, report_dev, report_pairs

log = logging.getLogger(__name__)


# ---- aligned models ----------------------------------------------------------------------------------------
# What the training of an aligned model reads: parallel text with its word alignment.


def check_aligned(config: DataConfig, thorough: bool = False) -> None:
    """Check the settings and files of an aligned model; `thorough` also reads all text once. ConfigError for
    settings that do not suit it, other errors as from `nmt.data.corpus.check_config`."""
    for key in ("corpora", "phrase_table"):
        if getattr(config, key):
            raise ConfigError(
                f"data.{key}: model.type joint learns from one aligned text; give train_source, "
                "train_target and alignment"
            )
    check_pairs(config, thorough)
    for name in ("source", "target"):
        check_whole_words(getattr(config, name), name, config.bpe_merges)
    texts = (config.train_source, config.train_target), (config.dev_source, config.dev_target)
    for key, pair in zip(ALIGNMENTS, texts, strict=True):
        path = getattr(config, key)
        if bool(path) != bool(pair[0]):
            raise ConfigError(
                f"data.{key} is missing: give the word alignment of {pair[0]} and {pair[1]}, a file of "
                "smt-align"
                if pair[0]
                else f"data.{key}: given without the text that it aligns"
            )
        if path:
            check_text_file(path)
            if thorough:
                files.check_parallel(*pair, path)


def check_whole_words(side: SideConfig, name: str, merges: int) -> None:
    """ConfigError for a side whose units may differ from the words of the alignment. `name`: source or
    target; `merges`: data.bpe_merges."""
    if (kind := subword_kind(side, merges)) != NONE:
        raise ConfigError(
            f"data.{name}: model.type joint reads whole words, as the alignment has them, not subwords "
            f"({kind}); set data.{name}.subword: none, without data.bpe_merges"
        )
    check_unjoined(side, name)


def check_unjoined(side: SideConfig, name: str) -> None:
    """ConfigError for a side whose text processing may join words of the alignment. `name`: of the side."""
    if side.normalize and not side.tokenize:
        raise ConfigError(
            f"data.{name}.normalize: joins some words of text that is tokenized already, so that the "
            f"alignment does not fit; set data.{name}.normalize: false"
        )


class PairWithLinks(NamedTuple):
    """The words of both lines of a pair, with their links."""

    source: list[str]
    target: list[str]
    links: Links
    location: str = ""  # file:line of the links; empty without an alignment


def add_links(
    rows: Iterable[Sequence[list[str]]], path: str, used: Iterable[int] = repeat(1)
) -> Iterator[PairWithLinks]:
    """Add the links of a file to pairs. `rows`: the words of source and target of each pair; `path`: the file
    of their alignment; `used`: a flag for each of its lines, 0 for a line whose pair is left out. DataError
    for a link outside its pair, and for a file of another length."""
    numbered = compress(enumerate(pharaoh.read(path), 1), used)
    for row, line in zip_longest(rows, numbered):
        if row is None or line is None:
            raise DataError(f"{path}: not as many lines as the text that it aligns; align the text again")
        (words, target_words), (number, links) = row, line
        location = f"{files.name_of(path)}:{number}"
        pharaoh.check_points(links, len(words), len(target_words), location)
        yield PairWithLinks(words, target_words, links, location)


def linked_pairs(
    config: DataConfig, text: TokenizedText, rows: Iterator[Sequence[list[str]]]
) -> Iterator[PairWithLinks]:
    """Add their links to all pairs of the training text, and the tags of several corpora to their sources;
    corpora without an alignment have no links. `rows`: the words of source and target of each pair of `text`.
    Errors as from `add_links`."""
    if not text.listed:
        yield from add_links(rows, config.alignment)
        return
    for corpus, used, size in zip(config.corpora, text.listed.flags, text.listed.sizes, strict=True):
        part = islice(rows, size)
        if corpus.alignment:
            pairs = add_links(part, corpus.alignment, repeat(1) if used is None else used)
        else:
            pairs = (PairWithLinks(words, target_words, frozenset()) for words, target_words in part)
        for pair in pairs:
            if corpus.tag and pair.source:
                links = frozenset((a + 1, b) for a, b in pair.links)
                pair = pair._replace(source=[corpus.tag, *pair.source], links=links)
            yield pair


def check_links(config: DataConfig, text: TokenizedText) -> None:
    """Check the alignments against the training text, before a run is created. DataError if one does not fit.
    Truecasing does not change the number of words, so it need not be learned yet."""
    sides = [LearningSide.of(name, config).pipeline for name in ("source", "target")]
    for _ in linked_pairs(config, text, text.split(*sides)):
        pass


def make_aligned_corpus(data: ParallelData, within: str) -> Corpus:
    """Open the binarized training pairs with their affiliations; they are written again only if texts,
    alignment, vocabularies or settings have changed. `within`: SENTENCE or PHRASE. DataError for an alignment
    that does not fit, and if no pair is short enough."""
    config, cache, stamp = data.config, data.cache, aligned_stamp(data.config, *data.vocabs, within)
    with lock_cache(cache):
        if read_stamp(cache).get("stamp") != stamp:
            rows = add_links(data.text.words(*data.pipelines), config.alignment)
            pairs = (
                (words, target_words, affiliate_pair(links, len(words), len(target_words), within))
                for words, target_words, links, _ in rows
            )
            numbered = data.text.show_progress(pairs, "pairs", "numbering the words")
            report = binarize_aligned(numbered, *data.vocabs, cache, config.max_length, stamp)
            report_pairs(report, config.max_length)
        corpus = open_corpus(cache, *map(len, data.vocabs), thorough=data.thorough)
    if not len(corpus):
        raise DataError(f"{config.train_source}: no pair is left to train on; is data.max_length too small?")
    return corpus


def make_aligned_dev(data: ParallelData, within: str) -> list[AlignedPair] | None:
    """Read the aligned development pairs and log how many of their words are unknown; None without any.
    `within`: SENTENCE or PHRASE. DataError for an alignment that does not fit."""
    config, pipelines, vocabs = data.config, data.pipelines, data.vocabs
    if not config.dev_source:
        return None
    rows = (
        [pipeline.units(line) for pipeline, line in zip(pipelines, lines, strict=True)]
        for lines in files.parallel(config.dev_source, config.dev_target)
    )
    pairs = [
        AlignedPair(
            vocabs[0].encode(words),
            vocabs[1].encode(target_words),
            affiliate_pair(links, len(words), len(target_words), within),
        )
        for words, target_words, links, _ in add_links(rows, config.dev_alignment)
    ]
    report_dev([list(pair.source) for pair in pairs], [list(pair.target) for pair in pairs], pipelines)
    return pairs


# ---- guided alignment --------------------------------------------------------------------------------------
# What guided alignment reads: the word alignment of the training text, as links between units.


GUIDED_KEY = "training.guided_alignment"


def check_guided(config: DataConfig, thorough: bool = False) -> None:
    """Check the settings and files for guided alignment; `thorough` also reads all text once. ConfigError for
    settings that exclude it, other errors as from `nmt.data.corpus.check_config`."""
    without = [replace(corpus, alignment="") for corpus in config.corpora]
    check_config(replace(config, alignment="", corpora=without), thorough)
    if config.phrase_table:
        raise ConfigError(f"{GUIDED_KEY}: needs parallel text with its alignment, not data.phrase_table")
    texts = [(config.train_source, config.train_target, config.alignment)]
    if config.corpora:
        if config.alignment:
            raise ConfigError("data.alignment: give the alignments of corpora as data.corpora[].alignment")
        texts = [(corpus.source, corpus.target, corpus.alignment) for corpus in config.corpora]
    if not any(path for *_, path in texts):
        key = "data.corpora[0].alignment" if config.corpora else "data.alignment"
        source, target, _ = texts[0]
        raise ConfigError(
            f"{GUIDED_KEY}: {key} is missing: give the word alignment of {source} and {target}, a file of "
            "smt-align"
        )
    for key in RATES:
        if getattr(config, key):
            raise ConfigError(
                f"{GUIDED_KEY}: cannot be combined with data.{key}, which segments words differently in each "
                "epoch"
            )
    for name in ("source", "target"):
        check_unjoined(getattr(config, name), name)
    for source, target, path in texts:
        if path:
            check_text_file(path)
            if thorough:
                files.check_parallel(source, target, path)


def guided_stream(data: ParallelData, stream: BatchStream, weight: float) -> GuidedStream:
    """Add the links of the training text to the batches of a stream. `weight`: weight of the guidance in the
    cost. The links are stored in a folder beside the binarized pairs, and written again only if something has
    changed. DataError for an alignment that does not fit."""
    folder, stamp = data.cache / LINKS, aligned_stamp(data.config, *data.vocabs, "units")
    with lock_cache(data.cache):
        if read_stamp(folder).get("stamp") != stamp:
            report = BinarizeReport()
            # Of a link's three numbers, the count of `unit_links` is the largest, at most max_length²: linked
            # words times units of a word. A corpus has no wider numbers than 32 bits.
            numbers = range(min(data.config.max_length**2 + 1, 1 << 32))
            with store(folder, {"target": numbers}, stamp, report) as [side]:
                for numbered in read_links(data, report):
                    side.add(numbered)
        links = open_corpus(folder, thorough=data.thorough)
    if len(links) != len(stream.corpus):
        raise DataError(
            f"{folder}: not the alignment of the pairs in {data.cache}; remove it, and it will be created "
            "again"
        )
    return GuidedStream(stream, links, weight)


def read_links(data: ParallelData, report: BinarizeReport) -> Iterator[list[int]]:
    """Yield the links of each pair that training uses: the rows of `unit_links`, one after the other. Counts
    the pairs in the report. DataError for an alignment that does not fit."""
    config, pipelines = data.config, data.pipelines
    rows = linked_pairs(config, data.text, data.text.words(*pipelines))
    for words, target_words, links, location in data.text.show_progress(rows, "pairs", "linking the units"):
        source, target = pipelines[0].cut(words), pipelines[1].cut(target_words)
        if not is_kept(source, target, config.max_length, report):
            continue
        if not location:
            yield []
            continue
        numbers = (
            word_numbers(pipelines[0], words, source, location),
            word_numbers(pipelines[1], target_words, target, location),
        )
        yield list(chain.from_iterable(unit_links(links, *numbers).tolist()))


def word_numbers(pipeline: TextPipeline, words: list[str], units: list[str], location: str) -> list[int]:
    """Index in `words` of the word of each unit. DataError, which begins with `location`, if the units have
    another number of words: SentencePiece's Unicode normalization may join or split words."""
    numbers = pipeline.word_numbers(units)
    if numbers[-1] + 1 != len(words):
        raise DataError(
            f"{location}: {len(words)} words between blanks have become {numbers[-1] + 1}, so that the "
            "alignment does not fit; set data.source.unicode and data.target.unicode to identity"
        )
    return numbers
