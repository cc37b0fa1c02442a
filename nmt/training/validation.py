"""Development cost and BLEU, and when to stop."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from nmt import metrics
from nmt.data.batches import Ids, make_batch
from nmt.data.corpus import Corpus
from nmt.data.running import ChunkStream, running
from nmt.data.text import TextPipeline
from nmt.data.vocab import Vocab
from nmt.layers.batch_scores import batches
from nmt.lm.protocols import Carried, LanguageModel, RunningTextModel
from nmt.models.registry import AnyModel
from nmt.search.beam import BeamConfig, search

BATCH = 64
TRACKS, STEPS = 16, 100  # of a development text that is read with the state carried


@dataclass
class DevSet:
    """Held-out pairs: ids for the cost, words (subwords joined) for BLEU. No pair is left out, however
    long."""

    pairs: list[tuple[Ids, Ids]]
    references: list[str]
    target: TextPipeline
    words: Vocab

    def score(self, model: AnyModel, beam_size: int) -> "DevScore":
        return DevScore(
            dev_cost(model, self.pairs), dev_bleu(model, self, beam_size) if beam_size else math.nan
        )


@dataclass
class DevText:
    """Held-out text for a language model."""

    corpus: Corpus

    def score(self, model: LanguageModel, beam_size: int) -> "DevScore":
        """The cost alone. A model that carries its state reads the text in 16 tracks, each from a fresh
        state, which costs slightly more than one track."""
        if model.carries:
            assert isinstance(model, RunningTextModel)
            return DevScore(cost=running_cost(model, self.corpus), bleu=math.nan)
        texts = [((), self.corpus.pair(row)[1]) for row in range(len(self.corpus))]
        return DevScore(cost=dev_cost(model, texts), bleu=math.nan)


@dataclass
class DevScore:
    cost: float  # -log p a word (with end symbols), natural logarithm
    bleu: float  # on tokenized text, subwords joined (sacreBLEU -tok none); nan where it was not computed

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.cost, 700.0))


def running_cost(model: RunningTextModel, corpus: Corpus, tracks: int = TRACKS) -> float:
    """Mean -log p of a unit of running text, end symbols included."""
    total, units = 0.0, 0
    carried: Carried = None
    for chunk in ChunkStream(running(corpus), tracks, STEPS).batches(0):
        scores, carried = model.score_running(chunk.to(model.device), carried)
        total -= float(scores.double().sum())
        units += chunk.target_tokens
    return total / units


def dev_cost(model: AnyModel | LanguageModel, pairs: Sequence[tuple[Ids, Ids]]) -> float:
    """Mean -log p of a target word, end symbols included."""
    total, words = 0.0, 0
    with torch.no_grad():
        for rows in batches(pairs, BATCH):
            batch = make_batch([pairs[row][0] for row in rows], [pairs[row][1] for row in rows])
            total += float(model.loss(batch.to(model.device)))
            words += batch.target_tokens
    return total / words


def dev_bleu(model: AnyModel, dev: DevSet, beam_size: int) -> float:
    found = search(model, [source for source, _ in dev.pairs], BeamConfig(beam_size=beam_size))
    texts = [dev.target.text(dev.words.decode(candidates[0].words), tokenized=True) for candidates in found]
    return metrics.corpus_bleu(texts, [dev.references], tokenize="none").score


def validate(model: AnyModel | LanguageModel, dev: DevSet | DevText, beam_size: int) -> DevScore:
    """Cost and, unless beam_size is 0, BLEU. The model comes back in the mode it was in."""
    training = model.training
    model.eval()
    score = dev.score(model, beam_size)  # type: ignore[arg-type]
    model.train(training)
    return score
