"""Cost, BLEU and chrF on held-out text."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from nmt import metrics
from nmt.data.affiliation import AlignedPair
from nmt.data.aligned import make_aligned_batch
from nmt.data.batches import Ids, make_batch
from nmt.data.binarized import Corpus
from nmt.data.corpus import DataConfig
from nmt.data.running import ChunkStream, join_sentences
from nmt.layers.batch_scores import batches_by_length
from nmt.lm.base import Carried, LanguageModel
from nmt.metrics import References
from nmt.models.protocols import AlignedModel
from nmt.models.registry import AnyModel
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.text.pipeline import TextPipeline, reads_raw, subword_kind
from nmt.text.vocab import Vocab
from nmt.training.config import AUTO
from nmt.training.protocols import Trainable

BATCH = 64  # pairs
TRACKS, STEPS = 16, 100  # parallel tracks, and units per chunk, for models that carry their state


@dataclass
class DevSet:
    """Held-out pairs: ids for the cost and the search, lines for BLEU and chrF. No pair is left out, however
    long."""

    pairs: list[tuple[Ids, Ids]]
    sources: list[list[Ids]]  # ids of the parts of each line: one, or more if it is long for nmt-translate
    references: References  # the target lines, as they are in the file or, with `tokenized`, as words
    target: TextPipeline
    target_vocab: Vocab
    tokenized: bool = False  # compare translations and references as words, before detokenization


@dataclass
class DevScore:
    """The results of a validation: the cost, and BLEU and chrF, which are nan if they were not computed."""

    cost: float  # mean -log p per word, end symbols included, natural logarithm
    bleu: float = math.nan  # BLEU of the translations as nmt-translate writes them, 0 to 100
    chrf: float = math.nan  # chrF2 of the same translations, 0 to 100
    signature: str = ""  # of these scores, as sacreBLEU's command prints them: BLEU|nrefs:1|case:mixed|...

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.cost, 700.0))

    def value(self, metric: str) -> float:
        """Score by which the best weights are chosen, higher is better: BLEU, chrF, or the negative cost.
        While BLEU or chrF rounds to 0.00, the negative cost stands in; it is below any positive score."""
        return -self.cost if metric == "cost" or self.is_zero(metric) else self.metric_score(metric)

    def is_zero(self, metric: str) -> bool:
        """Whether the metric is BLEU or chrF and would be printed as 0.00."""
        return metric != "cost" and self.metric_score(metric) < 0.005

    def metric_score(self, metric: str) -> float:
        """BLEU if `metric` is `bleu`, otherwise chrF; 0 to 100."""
        return self.bleu if metric == "bleu" else self.chrf

    def scores(self) -> str:
        """Format BLEU and chrF for a line of the log; a score that was not computed is left out."""
        values = {"BLEU": self.bleu, "chrF2": self.chrf}
        return "".join(f", {name} {value:.2f}" for name, value in values.items() if not math.isnan(value))


def bleu_tokenizer(requested: str, data: DataConfig) -> str:
    """The name of sacreBLEU's tokenizer for a development set. `requested`: a name, or AUTO, which chooses
    the tokenizer of the target language, or `none` for tokenized text. Text for SentencePiece is raw,
    whatever `target.tokenize` says."""
    if requested != AUTO:
        return requested
    raw = data.target.tokenize or reads_raw(subword_kind(data.target, data.bpe_merges))
    return metrics.choose_tokenizer(data.target.language) if raw else "none"


def validate_translator(model: AnyModel, dev: DevSet, beam_size: int, chrf: bool = False) -> DevScore:
    """The cost of the development pairs and, unless `beam_size` is 0, BLEU, with `chrf` also chrF2."""
    with evaluating(model):
        score = DevScore(cost=dev_cost(model, dev.pairs))
        if beam_size:
            lines = translations(model, dev, beam_size)
            bleu = dev.references.bleu(lines)
            score.bleu, score.signature = bleu.score, f"BLEU|{bleu.signature}"
            if chrf:
                result = dev.references.chrf(lines)
                score.chrf = result.score
                score.signature = f"{score.signature} chrF2|{result.signature}"
        return score


def validate_language_model(model: LanguageModel, dev: Corpus) -> DevScore:
    """Compute the cost on a development text of at least one sentence. A model that carries its state reads
    the text in 16 tracks, each from a fresh state; the cost is slightly higher than with a single track."""
    with evaluating(model):
        if model.carries:
            return DevScore(cost=running_cost(model, dev))
        texts: list[tuple[Ids, Ids]] = [((), dev.pair(row)[1]) for row in range(len(dev))]
        return DevScore(cost=dev_cost(model, texts))


def validate_aligned(model: AlignedModel, pairs: Sequence[AlignedPair]) -> DevScore:
    """Compute the cost of an aligned model on one pair or more."""
    total, words = 0.0, 0
    with evaluating(model), torch.no_grad():
        for start in range(0, len(pairs), BATCH):
            batch = make_aligned_batch(pairs[start : start + BATCH], model.shape)
            total += float(model.loss(batch.to(model.device)))
            words += batch.target_tokens
    return DevScore(cost=total / words)


@contextmanager
def evaluating(model: Trainable) -> Iterator[None]:
    """Context in which a model is in evaluation mode, without dropout; then in its previous mode."""
    training = model.training
    model.train(False)
    try:
        yield
    finally:
        model.train(training)


def dev_cost(model: AnyModel | LanguageModel, pairs: Sequence[tuple[Ids, Ids]]) -> float:
    """Mean -log p of a target word, end symbols included; natural logarithm."""
    total, words = 0.0, 0
    with torch.no_grad():
        for rows in batches_by_length(pairs, BATCH):
            batch = make_batch([pairs[row][0] for row in rows], [pairs[row][1] for row in rows])
            total += float(model.loss(batch.to(model.device)))
            words += batch.target_tokens
    return total / words


def running_cost(model: LanguageModel, corpus: Corpus, tracks: int = TRACKS) -> float:
    """Mean -log p of a unit of running text, read in `tracks` parts, with end symbols; natural log."""
    total, units = 0.0, 0
    carried: Carried = None
    for chunk in ChunkStream(join_sentences(corpus), tracks, STEPS).batches(0):
        scores, carried = model.score_running(chunk.to(model.device), carried)
        total -= float(scores.double().sum())
        units += chunk.target_tokens
    return total / units


def translations(model: AnyModel, dev: DevSet, beam_size: int) -> list[str]:
    """Translate the development set by beam search: each line's best, as nmt-translate writes it."""
    full = [part for parts in dev.sources for part in parts if len(part) or dev.tokenized]
    hypotheses = iter(search(model, full, BeamConfig(beam_size=beam_size)))
    lines, target = [], dev.target.for_text(dev.tokenized)
    for parts in dev.sources:
        translated = (
            target.join(dev.target_vocab.decode(next(hypotheses)[0].words))
            for part in parts
            if len(part) or dev.tokenized
        )
        lines.append(target.line(target.concatenate(translated)))
    return lines
