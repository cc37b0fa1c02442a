"""Development cost and BLEU, and when to stop."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from nmt import metrics
from nmt.data.batches import Ids, make_batch
from nmt.data.text import TextPipeline
from nmt.data.vocab import Vocab
from nmt.models.translator import Translator
from nmt.scoring import batches
from nmt.search.beam import BeamConfig, search

BATCH = 64


@dataclass
class DevSet:
    """Held-out pairs: ids for the cost, words (subwords joined) for BLEU. No pair is left out, however long."""

    pairs: list[tuple[Ids, Ids]]
    references: list[str]
    target: TextPipeline
    words: Vocab


@dataclass
class DevScore:
    cost: float  # -log p a word (with end symbols), natural logarithm
    bleu: float  # on tokenized text, subwords joined (sacreBLEU -tok none); nan where it was not computed

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.cost, 700.0))


def dev_cost(model: Translator, pairs: Sequence[tuple[Ids, Ids]]) -> float:
    """Mean -log p of a target word, end symbols included."""
    total, words = 0.0, 0
    with torch.no_grad():
        for rows in batches(pairs, BATCH):
            batch = make_batch([pairs[row][0] for row in rows], [pairs[row][1] for row in rows])
            total += float(model.loss(batch.to(model.device)))
            words += batch.target_tokens
    return total / words


def dev_bleu(model: Translator, dev: DevSet, beam_size: int) -> float:
    found = search(model, [source for source, _ in dev.pairs], BeamConfig(beam_size=beam_size))
    texts = [dev.target.text(dev.words.decode(candidates[0].words), tokenized=True) for candidates in found]
    return metrics.corpus_bleu(texts, [dev.references], tokenize="none").score


def validate(model: Translator, dev: DevSet, beam_size: int) -> DevScore:
    """Cost and, unless beam_size is 0, BLEU. The model comes back in the mode it was in."""
    training = model.training
    model.eval()
    score = DevScore(dev_cost(model, dev.pairs), dev_bleu(model, dev, beam_size) if beam_size else math.nan)
    model.train(training)
    return score
