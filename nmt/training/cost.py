"""What a training will cost on this machine: a model of the size of the configuration is trained for some
seconds on a sample of the text."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from pathlib import Path
from typing import cast

import torch

from nmt import files
from nmt.compute import device as devices
from nmt.data.batches import BatchStream
from nmt.data.corpus import Corpus
from nmt.models.config import ModelConfig
from nmt.models.registry import make
from nmt.text.inspection.language import WORD
from nmt.text.inspection.side import SideReport
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.subwords.pieces import MOST as PIECES
from nmt.text.vocab import Vocab
from nmt.training import memory, prepare
from nmt.training.job import Job, Stream
from nmt.training.loop import update
from nmt.training.optimizers import optimizer_of
from nmt.training.run_config import RunConfig

SAMPLE = 3000  # pairs
WARM_UP, FEWEST = 1, 2  # updates that are not measured, and that are, at least
SECONDS = 10.0  # of measured updates
FEWEST_MERGES = 100


@dataclass(frozen=True)
class Cost:
    """A measurement, and what it means for the whole training. Units are those of the target, end symbols
    included."""

    device: str
    parameters: int
    updates: int  # that were measured
    units: int  # that they had
    seconds: float
    planned_epochs: float  # 0: the configuration has no limit
    planned_updates: int
    planned_units: float

    @property
    def per_thousand(self) -> float:
        """Seconds a thousand units."""
        return 1000 * self.seconds / self.units

    @property
    def planned_seconds(self) -> float:
        """Of all updates, without validations."""
        return self.planned_units * self.seconds / self.units


@dataclass
class Sample:
    """Pairs from all over a text, as a model reads them."""

    share: float  # of its pairs in those of the text
    corpus: Corpus
    vocab_sizes: tuple[int, int]  # of the whole text, estimated


def take_sample(config: RunConfig, sides: tuple[SideReport, SideReport], folder: Path) -> Sample:
    """A sample of the training text; its files lie in `folder`."""
    data, merges = config.data, config.data.bpe_merges
    paths = folder / "sample.source", folder / "sample.target"
    pairs = files.number_of_lines(data.train_source)
    step = max(1, pairs // SAMPLE)
    rows = list(islice(files.parallel(data.train_source, data.train_target), 0, None, step))
    for path, lines in zip(paths, zip(*rows, strict=True), strict=True):
        files.write_text(path, lines)
    small = replace(data, train_source=str(paths[0]), train_target=str(paths[1]))
    small.bpe_merges = fewer_merges(merges, sides, rows)
    with silent():
        source, target, source_counts, target_counts = prepare.make_pipelines(small)
        vocabs = prepare.make_vocabs(small, (source, target), (source_counts, target_counts))
        corpus = prepare.make_corpus(small, folder / "corpus", (source, target), vocabs)
    sizes = (
        vocab_size(data.source, sides[0], vocabs[0], source, merges),
        vocab_size(data.target, sides[1], vocabs[1], target, merges),
    )
    return Sample(len(rows) / pairs, corpus, (max(sizes),) * 2 if data.shared_vocabulary else sizes)


def fewer_merges(merges: int, sides: tuple[SideReport, SideReport], rows: Sequence[tuple[str, ...]]) -> int:
    """As many BPE merges as cut the words of a sample about as finely as the whole text's cut its words."""
    if not merges:
        return 0
    there = sum(len(side.words) for side in sides)
    texts = zip(*rows, strict=True)
    here = sum(len({word for line in lines for word in WORD.findall(line.lower())}) for lines in texts)
    return max(FEWEST_MERGES, merges * here // max(here, there))


def vocab_size(
    config: SideConfig, side: SideReport, vocab: Vocab, pipeline: TextPipeline, merges: int
) -> int:
    """About how many words or units the vocabulary of a side will have, of which a sample shows fewer."""
    if pipeline.subwords:
        expected = PIECES if pipeline.subwords.raw else merges
    else:
        expected = sum(1 for number in side.words.values() if number >= config.min_count)
    return max(len(vocab), min(expected, config.vocabulary))


# ---- measuring ---------------------------------------------------------------------------------------------


def measure(
    config: RunConfig, sides: tuple[SideReport, SideReport], folder: Path, seconds: float = SECONDS
) -> Cost:
    """Train for some seconds on a sample, which is kept in `folder`. `sides`: what the text holds.
    UserError where the batches do not fit into memory."""
    sample = take_sample(config, sides, folder)
    device = devices.resolve(config.device)
    shown = devices.set_up(device, config.threads or None, config.matmul)
    job = job_of(config, sample, device)
    updates, units, took = timed(job, seconds)
    updates_an_epoch = batches(config, sample, job.stream) / job.update_batches
    epochs = planned_epochs(config, updates_an_epoch)
    return Cost(
        device=shown,
        parameters=sum(one.numel() for one in job.model.parameters()),
        updates=updates,
        units=units,
        seconds=took,
        planned_epochs=epochs,
        planned_updates=round(epochs * updates_an_epoch),
        planned_units=epochs / sample.share * (len(sample.corpus.target) + len(sample.corpus)),
    )


def job_of(config: RunConfig, sample: Sample, device: str) -> Job:
    """A training of the sample by a new model."""
    training = config.training
    torch.manual_seed(config.seed)
    model = make(
        cast(ModelConfig, config.model),
        *sample.vocab_sizes,
        spelling=list(map(str, range(sample.vocab_sizes[0]))),
    ).to(device)
    return Job(
        directory=Path(config.run),
        config=training,
        model=model,
        optimizer=optimizer_of(training, model.parameters()),
        stream=BatchStream(
            sample.corpus, training.batch_size, training.pool, config.seed, tokens=training.batch_tokens
        ),
        validate=None,
        stop=bool,
        precision=config.precision,
    )


def timed(job: Job, seconds: float) -> tuple[int, int, float]:
    """Updates, their units, and the seconds that they took."""
    job.model.train()
    stream = chain.from_iterable(map(job.stream.batches, count()))
    updates = units = 0
    began = end = time.monotonic()
    while updates < WARM_UP + FEWEST or end - began < seconds:
        group = list(islice(stream, job.update_batches))
        with memory.watched(job, group):
            update(job, group)
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


def batches(config: RunConfig, sample: Sample, stream: Stream) -> int:
    """Batches of an epoch of the whole text; `stream`: those of the sample."""
    if config.training.batch_tokens:
        return round(stream.count(0) / sample.share)
    return -(-round(len(sample.corpus) / sample.share) // config.training.batch_size)


def planned_epochs(config: RunConfig, updates: float) -> float:
    """How often a training sees its text, in so many updates each time, if nothing ends it sooner; 0: no
    limit is set."""
    limits = [float(config.training.max_epochs)] if config.training.max_epochs else []
    if config.training.max_steps:
        limits.append(config.training.max_steps / updates)
    return min(limits, default=0.0)


@contextmanager
def silent() -> Iterator[None]:
    """Messages about a sample would be taken for those on the text."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
