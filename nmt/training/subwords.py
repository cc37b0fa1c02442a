"""Subwords of a training: learned from its text, and cut anew in each epoch."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from nmt.data.corpus import DataConfig
from nmt.errors import ConfigError
from nmt.io.progress import Progress
from nmt.text import scripts
from nmt.text.pipeline import SideConfig, TextPipeline, kind_of, reads_raw
from nmt.text.subwords import NONE, SUBWORDS, Learning, Resampling, Sampler, TrainingText
from nmt.text.subwords.bpe import BPE
from nmt.text.vocab import Vocab

log = logging.getLogger(__name__)

RATES = ("bpe_dropout", "unigram_sampling")  # keys of `data`, see Resampling


@dataclass
class LearningSide:
    """One side of the training text, and what is learned of it."""

    name: str  # source or target
    config: SideConfig
    kind: str  # of its subwords, or `none`
    pipeline: TextPipeline
    text: TrainingText

    @classmethod
    def of(cls, name: str, data: DataConfig) -> Self:
        """A side of which nothing is read yet. ConfigError, with the side, for settings that contradict each
        other."""
        config = data.source if name == "source" else data.target
        try:
            kind = kind_of(config, data.bpe_merges)
            pipeline = TextPipeline.of(config, data.bpe_merges)
        except ConfigError as error:
            raise ConfigError(f"data.{name}: {error}") from error
        return cls(name, config, kind, pipeline, TrainingText(reads_raw(kind)))


def suits(data: DataConfig, monolingual: bool) -> bool:
    """Do the merges of a preset suit a text? Not that of a language model, nor where a configuration has
    units, a vocabulary or word vectors of its own, nor where SentencePiece cuts both sides."""
    sides = (data.source, data.target)
    own = any(side.codes or side.vocab_file or side.characters for side in sides)
    if monolingual or own or data.source_vectors or data.target_vectors:
        return False
    return any(kind_of(side, data.bpe_merges) == BPE.kind for side in sides)


def check_sides(data: DataConfig, *sides: LearningSide) -> None:
    """ConfigError for settings of subwords that contradict each other, before any text is read."""
    pairs = [side for side in sides if side.kind == BPE.kind]
    if data.bpe_merges and any(side.pipeline.subwords for side in pairs):
        raise ConfigError(
            "data.bpe_merges and source.codes / target.codes exclude each other: learn codes here, or give "
            "them"
        )
    if data.bpe_merges and any(side.pipeline.characters for side in sides):
        raise ConfigError("data.bpe_merges: characters are no subwords; leave out one of the two")
    if data.bpe_merges and not pairs:
        raise ConfigError(
            f"data.bpe_merges: no side has BPE: {', '.join(f'{side.name} {side.kind}' for side in sides)}; "
            "leave it out, or set data.source.subword or data.target.subword to bpe"
        )
    check_sampling(data, [SUBWORDS[side.kind] for side in sides if side.kind != NONE])


def learn_subwords(data: DataConfig, *sides: LearningSide, show_bar: bool = False) -> None:
    """Give the pipelines the subwords that are not given as files. ConfigError for settings that contradict
    each other."""
    check_sides(data, *sides)
    waiting = [side for side in sides if side.kind != NONE and side.pipeline.subwords is None]
    groups = [waiting] if len(waiting) > 1 and is_joint(data, *waiting) else [[side] for side in waiting]
    for group in groups:
        learn(data, group, show_bar)


def learn(data: DataConfig, sides: Sequence[LearningSide], show_bar: bool) -> None:
    """Learn the subwords that these sides share."""
    text = sides[0].text if len(sides) == 1 else sides[0].text + sides[1].text
    names = " and ".join(side.name for side in sides)
    with Progress(data.bpe_merges, "merges", show_bar, f"learning {sides[0].kind}") as progress:
        how = Learning(
            merges=data.bpe_merges,
            pieces=data.pieces,
            byte_fallback=data.byte_fallback,
            unicode=sides[0].config.unicode,
            over=progress.over,
        )
        try:
            learned = SUBWORDS[sides[0].kind].learn(text, how)
        except ConfigError as error:
            raise ConfigError(f"data.{error}") from error
    log.info("%s subwords: %s, %s from %s", names, sides[0].kind, learned.summary, text.summary)
    for side in sides:
        side.pipeline.subwords = learned


def is_joint(data: DataConfig, source: LearningSide, target: LearningSide) -> bool:
    """Do both sides share their subwords?"""
    if not data.bpe_joint or source.kind != target.kind or source.config.unicode != target.config.unicode:
        return False
    if data.shared_vocabulary or not source.text.sentences:
        return True
    return scripts.script_of_text(source.text.characters()) == scripts.script_of_text(
        target.text.characters()
    )


def unit_counts(side: LearningSide, data: DataConfig) -> Counter[str]:
    """How often each unit occurs; with sampling every unit that it can make, too."""
    cutting = side.pipeline.subwords
    if not side.text.sentences:
        counts = side.pipeline.unit_counts(side.text.words)
    else:
        counts = Counter(unit for line in side.text.lines for unit in side.pipeline.cut(line.split(" ")))
    if cutting:
        for unit in cutting.inventory(side.text.characters(), sampling_rate(data, side.pipeline) > 0):
            counts[unit] = max(1, counts[unit])
    return counts


def sampling_rate(data: DataConfig, pipeline: TextPipeline) -> float:
    """How much the cuts of a pipeline vary in training; 0: they do not."""
    cutting: object = pipeline.subwords
    return float(getattr(data, cutting.rate_key)) if isinstance(cutting, Resampling) else 0.0


def make_sampler(data: DataConfig, pipeline: TextPipeline, vocab: Vocab) -> Sampler | None:
    """Create the sampler that splits the sentences of a side anew in each epoch; None without sampling."""
    rate, cutting = sampling_rate(data, pipeline), pipeline.subwords
    return cutting.sampler(rate, vocab) if rate and isinstance(cutting, Resampling) else None


def check_sampling(data: DataConfig, used: Sequence[object]) -> None:
    """ConfigError for a rate that none of the subwords, or of their classes, can use."""
    keys = {item.rate_key for item in used if isinstance(item, Resampling)}
    for key in RATES:
        if getattr(data, key) and key not in keys:
            raise ConfigError(
                f"data.{key}: there is nothing to {'drop' if key == 'bpe_dropout' else 'sample'} without "
                f"subwords; set {REMEDIES[key]}"
            )


REMEDIES = {
    "bpe_dropout": "data.bpe_merges, or codes",
    "unigram_sampling": "data.source.subword or data.target.subword to unigram",
}
