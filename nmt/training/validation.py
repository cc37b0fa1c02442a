"""Cost and BLEU on held-out text."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor

from nmt import metrics
from nmt.data.batches import Batch, Ids, make_batch
from nmt.data.corpus import Corpus
from nmt.data.running import ChunkStream, running
from nmt.layers.batch_scores import batches
from nmt.lm.protocols import Carried, LanguageModel, RunningTextModel
from nmt.models.registry import AnyModel
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.text.pipeline import TextPipeline
from nmt.text.vocab import Vocab

BATCH = 64
TRACKS, STEPS = 16, 100  # of a development text that is read with the state carried


class Costed(Protocol):
    """A model whose loss on a batch of sentences can be computed."""

    training: bool

    @property
    def device(self) -> torch.device: ...

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor: ...

    def train(self, mode: bool = True) -> Self: ...


@dataclass
class DevSet:
    """Held-out pairs: ids for the cost, words (subwords joined) for BLEU. No pair is left out, however
    long."""

    pairs: list[tuple[Ids, Ids]]
    references: list[str]
    target: TextPipeline
    target_vocab: Vocab


@dataclass
class DevScore:
    """A validation: the cost, and BLEU where it was computed."""

    cost: float  # -log p a word (with end symbols), natural logarithm
    bleu: float  # on tokenized text, subwords joined (sacreBLEU -tok none); nan where it was not computed

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.cost, 700.0))


def validate_translator(model: AnyModel, dev: DevSet, beam_size: int) -> DevScore:
    """Cost and, unless `beam_size` is 0, BLEU."""
    with evaluating(model):
        cost = dev_cost(model, dev.pairs)
        return DevScore(cost=cost, bleu=dev_bleu(model, dev, beam_size) if beam_size else math.nan)


def validate_language_model(model: LanguageModel, dev: Corpus) -> DevScore:
    """The cost. A model that carries its state reads the text in 16 tracks, each from a fresh state, which
    costs slightly more than one track."""
    with evaluating(model):
        if model.carries:
            assert isinstance(model, RunningTextModel)
            return DevScore(cost=running_cost(model, dev), bleu=math.nan)
        texts: list[tuple[Ids, Ids]] = [((), dev.pair(row)[1]) for row in range(len(dev))]
        return DevScore(cost=dev_cost(model, texts), bleu=math.nan)


@contextmanager
def evaluating(model: Costed) -> Iterator[None]:
    """A model without dropout; afterwards it is in the mode it was in."""
    training = model.training
    model.train(False)
    yield
    model.train(training)


def dev_cost(model: Costed, pairs: Sequence[tuple[Ids, Ids]]) -> float:
    """Mean -log p of a target word, end symbols included."""
    total, words = 0.0, 0
    with torch.no_grad():
        for rows in batches(pairs, BATCH):
            batch = make_batch([pairs[row][0] for row in rows], [pairs[row][1] for row in rows])
            total += float(model.loss(batch.to(model.device)))
            words += batch.target_tokens
    return total / words


def running_cost(model: RunningTextModel, corpus: Corpus, tracks: int = TRACKS) -> float:
    """Mean -log p of a unit of running text, end symbols included."""
    total, units = 0.0, 0
    carried: Carried = None
    for chunk in ChunkStream(running(corpus), tracks, STEPS).batches(0):
        scores, carried = model.score_running(chunk.to(model.device), carried)
        total -= float(scores.double().sum())
        units += chunk.target_tokens
    return total / units


def dev_bleu(model: AnyModel, dev: DevSet, beam_size: int) -> float:
    """BLEU of the best translations."""
    found = search(model, [source for source, _ in dev.pairs], BeamConfig(beam_size=beam_size))
    texts = [
        dev.target.text(dev.target_vocab.decode(candidates[0].words), tokenized=True) for candidates in found
    ]
    return metrics.corpus_bleu(texts, [dev.references], tokenize="none").score
