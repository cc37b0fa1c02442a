"""What guided alignment reads: the word alignment of the training text, as links between units."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from nmt import files
from nmt.data import corpus
from nmt.data.batches import BatchStream
from nmt.data.binarized import BinarizeReport, is_kept, open_corpus, read_stamp, store
from nmt.data.corpus import DataConfig, aligned_stamp, check_not_empty
from nmt.data.guidance import unit_links
from nmt.data.guided import GuidedStream
from nmt.data.tokenized import TokenizedText
from nmt.errors import ConfigError, DataError
from nmt.runs.directory import LINKS
from nmt.text.pipeline import TextPipeline
from nmt.training.aligned import Pipelines, Vocabs, check_unjoined, with_links
from nmt.training.prepare import held
from nmt.training.subwords import RATES

KEY = "training.guided_alignment"


def check(config: DataConfig, thorough: bool = False) -> None:
    """As `nmt.data.corpus.check_config`, for a training with guided alignment."""
    corpus.check_config(replace(config, alignment=""), thorough)
    if not config.train_source:
        raise ConfigError(f"{KEY}: needs train_source and train_target, one text with its alignment")
    if not config.alignment:
        raise ConfigError(
            f"{KEY}: data.alignment is missing: the word alignment of {config.train_source} and "
            f"{config.train_target}, as smt-align makes it"
        )
    for key in RATES:
        if getattr(config, key):
            raise ConfigError(f"{KEY}: does not go with data.{key}, which cuts words anew in each epoch")
    for name in ("source", "target"):
        check_unjoined(getattr(config, name), name)
    check_not_empty(config.alignment)
    if thorough:
        files.check_parallel(config.train_source, config.train_target, config.alignment)


def guided(
    stream: BatchStream,
    weight: float,
    config: DataConfig,
    cache: Path,
    pipelines: Pipelines,
    vocabs: Vocabs,
    text: TokenizedText,
    thorough: bool = True,
) -> GuidedStream:
    """A stream whose batches have the links of `data.alignment`. They lie in a folder beside the binarized
    pairs, and are made anew only when something has changed. `thorough`: as for `open_corpus`."""
    folder, stamp = cache / LINKS, aligned_stamp(config, *vocabs, "units")
    with held(cache):
        if read_stamp(folder).get("stamp") != stamp:
            report = BinarizeReport()
            numbers = range(config.max_length**2 + 1)
            with store(folder, {"target": numbers}, stamp, report) as [side]:
                for numbered in links_of(config, pipelines, text, report):
                    side.add(numbered)
        links = open_corpus(folder, thorough=thorough)
    if len(links) != len(stream.corpus):
        raise DataError(f"{folder}: not the links of the pairs in {cache}; remove it: it is made again")
    return GuidedStream(stream, links, weight)


def links_of(
    config: DataConfig, pipelines: Pipelines, text: TokenizedText, report: BinarizeReport
) -> Iterator[list[int]]:
    """The links of each pair that training keeps, three numbers each; the report counts the pairs."""
    rows = with_links(text.words(*pipelines), config.alignment)
    for number, (words, other, links) in enumerate(text.counted(rows, "pairs", "linking the units"), 1):
        source, target = pipelines[0].cut(words), pipelines[1].cut(other)
        if is_kept(source, target, config.max_length, report):
            where = f"{config.alignment}:{number}"
            numbers = (
                words_of(pipelines[0], words, source, where),
                words_of(pipelines[1], other, target, where),
            )
            yield list(chain.from_iterable(unit_links(links, *numbers).tolist()))


def words_of(pipeline: TextPipeline, words: list[str], units: list[str], where: str) -> list[int]:
    """The number of the word of each unit. DataError for units of other words: Unicode normalization of
    SentencePiece may join or part words."""
    numbers = pipeline.word_numbers(units)
    if numbers[-1] + 1 != len(words):
        raise DataError(
            f"{where}: {len(words)} words between blanks have become {numbers[-1] + 1}, so that the "
            "alignment does not fit; set data.source.unicode and data.target.unicode to identity"
        )
    return numbers
