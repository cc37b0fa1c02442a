"""Estimates how long a training will take on this machine: a model of the configured size is trained for some
seconds on a sample of the text."""

import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from pathlib import Path
from typing import cast

import torch

from nmt.compute import device as devices
from nmt.data.batches import BatchStream
from nmt.data.binarized import Corpus
from nmt.io import files
from nmt.models.config import ModelConfig
from nmt.models.registry import AnyModel, make
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.text.inspection import SideReport
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.scripts import WORD
from nmt.text.subwords.sentencepiece import MOST_PIECES
from nmt.text.vocab import Vocab
from nmt.training import loop, prepare
from nmt.training.config import RunConfig
from nmt.training.job import TrainingJob
from nmt.training.protocols import Stream
from nmt.training.validation import dev_cost, evaluating

SAMPLE = 3000  # pairs
WHOLE_TEXT = 100_000  # pairs up to which the vocabulary is made from the whole text, beyond it is estimated
SEARCHED = 64  # lines whose translation is timed
WARM_UP, FEWEST = 1, 2  # updates before the measurement, and minimum number of measured updates
SECONDS = 10.0  # minimum duration of the measurement
FEWEST_MERGES = 100


@dataclass(frozen=True)
class Cost:
    """A measured speed, and what follows for the whole training. Units: of the target, with end symbols."""

    device: str
    parameters: int
    updates: int  # measured updates
    units: int  # target units in these updates
    seconds: float  # duration of these updates
    validation_seconds: float  # duration of one validation
    epoch_updates: float
    epoch_units: float
    validate_every: int  # updates; 0: each epoch
    epochs: float  # after which the training ends; 0: the configuration does not say
    minutes: float = 0.0  # minutes after which the training ends; 0: the configuration does not say

    @property
    def per_thousand(self) -> float:
        """Seconds of training for a thousand target units."""
        return 1000 * self.seconds / self.units

    @property
    def epoch_seconds(self) -> float:
        """Estimated seconds of an epoch, its validations included."""
        validations = self.epoch_updates / self.validate_every if self.validate_every else 1
        return self.epoch_units * self.seconds / self.units + validations * self.validation_seconds

    @property
    def planned_epochs(self) -> float:
        """Number of epochs until a limit ends training; 0 if no limit is set."""
        limits = [self.epochs] if self.epochs else []
        if self.minutes:
            limits.append(max(0.0, 60 * self.minutes - self.validation_seconds) / self.epoch_seconds)
        return min(limits, default=0.0)

    @property
    def planned_updates(self) -> int:
        return round(self.planned_epochs * self.epoch_updates)

    @property
    def planned_validations(self) -> int:
        """Number of validations, including the last one, after part of an epoch or of `validate_every`."""
        return math.ceil(round(self.planned_updates / (self.validate_every or self.epoch_updates), 3))

    @property
    def planned_seconds(self) -> float:
        """Seconds of all updates and validations."""
        updates = self.planned_epochs * self.epoch_units * self.seconds / self.units
        return updates + self.planned_validations * self.validation_seconds


@dataclass
class TrainingSample:
    """Pairs sampled from the whole text, as a model reads them."""

    share: float  # number of its pairs, divided by that of the text
    corpus: Corpus
    vocab_sizes: tuple[int, int]  # estimated for the whole text: source, target


def take_sample(config: RunConfig, sides: tuple[SideReport, SideReport], folder: Path) -> TrainingSample:
    """Sample the training text, about SAMPLE pairs evenly spaced. `sides`: reports on the words of source and
    target. Writes the sample and its binarized corpus to `folder`. Errors as from `prepare.make_sides` and
    `prepare.make_corpus`."""
    data, merges = config.data, config.data.bpe_merges
    paths = folder / "sample.source", folder / "sample.target"
    pairs = files.number_of_lines(data.train_source)
    step = max(1, pairs // SAMPLE)
    rows = list(islice(files.parallel(data.train_source, data.train_target), 0, None, step))
    for path, lines in zip(paths, zip(*rows, strict=True), strict=True):
        files.write_text(path, lines)
    small = replace(data, train_source=str(paths[0]), train_target=str(paths[1]))
    if pairs > WHOLE_TEXT:
        small.bpe_merges = fewer_merges(merges, sides, rows)
    with silent():
        pipelines, vocabs = prepare.make_sides(small if pairs > WHOLE_TEXT else data)
        text = prepare.training_text(small)
        corpus = prepare.make_corpus(prepare.ParallelData(small, pipelines, vocabs, text, folder / "corpus"))
    sizes = len(vocabs[0]), len(vocabs[1])
    if pairs > WHOLE_TEXT:
        growth = merges / small.bpe_merges if merges else 1.0
        sizes = (
            vocab_size(data.source, sides[0], vocabs[0], pipelines[0], growth),
            vocab_size(data.target, sides[1], vocabs[1], pipelines[1], growth),
        )
    return TrainingSample(len(rows) / pairs, corpus, (max(sizes),) * 2 if data.shared_vocabulary else sizes)


def fewer_merges(merges: int, sides: tuple[SideReport, SideReport], rows: Sequence[tuple[str, ...]]) -> int:
    """Number of BPE merges that split the words of the sample about as finely as `merges` those of the whole
    text; 0 for 0. `sides`: reports on the whole text's words; `rows`: the line pairs of the sample."""
    if not merges:
        return 0
    words = sum(len(side.words) for side in sides)
    texts = zip(*rows, strict=True)
    here = sum(len({word for line in lines for word in WORD.findall(line.lower())}) for lines in texts)
    return max(FEWEST_MERGES, merges * here // max(here, words))


def vocab_size(
    config: SideConfig, side: SideReport, vocab: Vocab, pipeline: TextPipeline, growth: float
) -> int:
    """Estimate the vocabulary size of a side for the whole text, of which the sample shows only a part.
    `growth`: number of merges for the text divided by that for the sample."""
    if pipeline.subwords:
        expected = MOST_PIECES if pipeline.subwords.raw else round(growth * len(vocab))
    else:
        expected = sum(1 for number in side.words.values() if number >= config.min_count)
    return max(len(vocab), min(expected, config.vocabulary))


# ---- measuring ---------------------------------------------------------------------------------------------


def measure(
    config: RunConfig, sides: tuple[SideReport, SideReport], folder: Path, seconds: float = SECONDS
) -> Cost:
    """Measure the speed: train a new model for at least `seconds` on a sample of the text, which is stored in
    `folder`. `sides`: reports on source and target. Sets threads and matrix back end of this process.

    UserError if the batches do not fit into memory, ConfigError for a device that cannot be used, other
    errors as from `take_sample`.
    """
    sample = take_sample(config, sides, folder)
    device = devices.resolve_device(config.device)
    shown = devices.set_up_device(device, config.threads or None, config.matmul)
    job = make_job(config, sample, device)
    updates, units, took = time_updates(job, seconds)
    epoch_updates = epoch_batches(config, sample, job.stream) / job.update_batches
    return Cost(
        device=shown,
        parameters=sum(parameter.numel() for parameter in job.model.parameters()),
        updates=updates,
        units=units,
        seconds=took,
        validation_seconds=validation_seconds(config, sample, job),
        epoch_updates=epoch_updates,
        epoch_units=(len(sample.corpus.target) + len(sample.corpus)) / sample.share,
        validate_every=config.training.validate_every,
        epochs=planned_epochs(config, epoch_updates),
        minutes=config.training.max_minutes,
    )


def validation_seconds(config: RunConfig, sample: TrainingSample, job: TrainingJob) -> float:
    """Estimate the time of a validation, using lines of the sample for those of the development set and
    assuming that translations are as long as the references. 0 without a development set."""
    if not config.data.dev_source:
        return 0.0
    model = cast(AnyModel, job.model)
    rows = range(0, len(sample.corpus), -(-len(sample.corpus) // SEARCHED))
    pairs = [sample.corpus.pair(row) for row in rows]
    ratio = len(sample.corpus.target) / max(1, len(sample.corpus.source))
    beam = config.training.dev_beam
    began = time.monotonic()
    with evaluating(model):
        dev_cost(model, pairs)
        if beam:
            limits = BeamConfig(beam_size=beam, max_length_factor=ratio)
            for _ in search(model, [source for source, _ in pairs], limits):
                pass
    return (time.monotonic() - began) / len(pairs) * files.number_of_lines(config.data.dev_source)


def make_job(config: RunConfig, sample: TrainingSample, device: str) -> TrainingJob:
    """Create a job that trains a new model on the sample, with the whole text's vocabulary sizes."""
    training = config.training
    torch.manual_seed(config.seed)
    model = make(
        cast(ModelConfig, config.model),
        *sample.vocab_sizes,
        spelling=list(map(str, range(sample.vocab_sizes[0]))),  # the speed does not depend on the words
    ).to(device)
    job = TrainingJob(config, device)
    job.set_up(
        model,
        BatchStream(
            sample.corpus, training.batch_size, training.pool, config.seed, tokens=training.batch_tokens
        ),
    )
    return job


def time_updates(job: TrainingJob, seconds: float) -> tuple[int, int, float]:
    """Run WARM_UP updates, then at least FEWEST more, for at least `seconds`. Returns the number of these
    measured updates, their target units, and the seconds that they took. UserError as from `loop.update`."""
    job.model.train()
    stream = chain.from_iterable(map(job.stream.batches, count()))
    updates = units = 0
    began = end = time.monotonic()
    while updates < WARM_UP + FEWEST or end - began < seconds:
        group = list(islice(stream, job.update_batches))
        with loop.report_out_of_memory(job, group):
            loop.update(job, group)
        updates += 1
        job.progress.step += 1
        if job.model.device.type == "cuda":
            torch.cuda.synchronize(job.model.device)
        end = time.monotonic()
        if updates == WARM_UP:
            began, units = end, 0
        else:
            units += sum(batch.target_tokens for batch in group)
    return updates - WARM_UP, units, end - began


def epoch_batches(config: RunConfig, sample: TrainingSample, stream: Stream) -> int:
    """Estimate the number of batches in an epoch of the whole text. `stream`: the batches of the sample."""
    if config.training.batch_tokens:
        return round(stream.count(0) / sample.share)
    return -(-round(len(sample.corpus) / sample.share) // config.training.batch_size)


def planned_epochs(config: RunConfig, updates: float) -> float:
    """Epochs until a limit ends training, given the updates per epoch; 0 if no limit is set."""
    limits = [float(config.training.max_epochs)] if config.training.max_epochs else []
    if config.training.max_steps:
        limits.append(config.training.max_steps / updates)
    return min(limits, default=0.0)


@contextmanager
def silent() -> Iterator[None]:
    """Context that suppresses log messages up to warnings: they would describe the sample, not the text."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(level)
