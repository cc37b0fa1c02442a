"""Scores of lines by the neural language model of a run directory, and lines drawn from it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from nmt.data.batches import Ids
from nmt.data.running import ChunkStream, as_corpus, join_sentences
from nmt.errors import ConfigError, check_lines
from nmt.lm.base import Carried, choose_scorer
from nmt.models.protocols import StepModel
from nmt.ngram import count_models
from nmt.ngram.unknown_shares import UnknownShares
from nmt.runs import checkpoint
from nmt.runs.checkpoint import SavedLM
from nmt.runs.language_model import LineScorer, LineScores
from nmt.search.config import SamplingConfig
from nmt.search.sampling import sample
from nmt.text.vocab import UNK

STEPS = 200  # units of running text scored at a time


class NeuralLineScorer(LineScorer):
    """Scores lines with the neural language model of a run directory."""

    def __init__(self, run: SavedLM, normalized: bool = False, backoff: str = "") -> None:
        """`normalized`, `backoff`: as in `load_language_model`. ConfigError for a model that cannot be scored
        so, DataError for a damaged ARPA file."""
        self.run, self.name, self.vocab_size = run, run.name, len(run.words) - 2
        self.scorer = choose_scorer(run.model, normalized, run.directory)
        self.carried: Carried = None
        self.shares = UnknownShares(count_models.read_arpa(backoff), run.words.ids) if backoff else None

    def __repr__(self) -> str:
        return f"<LineScorer {self.run.description}>"

    @property
    def carries(self) -> bool:
        return self.run.model.carries

    @property
    def raw(self) -> bool:
        return self.run.text.raw

    def files(self) -> list[Path]:
        return self.run.files()

    def units(self, lines: Sequence[str]) -> list[list[str]]:
        check_lines(lines)
        return [self.run.text.units(line) for line in lines]

    def score(self, lines: Sequence[str]) -> list[LineScores]:
        texts = self.units(lines)
        ids = self.run.encode(texts)
        log_probs = self.score_running(ids) if self.carries else self.scorer.score_texts(ids)
        if self.shares:
            log_probs = [
                np.add(scores, share).tolist()
                for scores, share in zip(log_probs, self.shares.logs(texts), strict=True)
            ]
        return [
            LineScores(
                units=text,
                log_probs=scores,
                in_vocabulary=[UNK != unit < len(self.run.words) for unit in line],
            )
            for text, scores, line in zip(texts, log_probs, ids, strict=True)
        ]

    def score_running(self, texts: Sequence[Ids]) -> list[list[float]]:
        """Natural log p of each unit of each text and of its end symbol. Together the texts are running text,
        which continues that of the previous call."""
        model = self.run.model
        parts = [torch.zeros(0, dtype=torch.float64)]
        for chunk in ChunkStream(join_sentences(as_corpus(texts)), 1, STEPS).batches(0):
            scores, self.carried = model.score_running(chunk.to(model.device), self.carried)
            parts.append(scores.double().cpu())
        return [part.tolist() for part in torch.split(torch.cat(parts), [len(text) + 1 for text in texts])]

    def log_z(self, lines: Sequence[str]) -> list[float]:
        model, units = self.run.model, self.units(lines)
        if not lines or model.without_log_z() is None:
            return []
        texts = self.run.encode(units)
        normalizers: list[float] = np.abs(model.log_normalizers(texts)).tolist()
        return normalizers


def load_line_scorer(
    path: str | Path, which: str, device: str, normalized: bool, backoff: str, tokenized: bool
) -> NeuralLineScorer:
    """Load the language model of a run directory; arguments and errors as in `load_language_model`."""
    run = checkpoint.load_lm(path, which, device)
    return NeuralLineScorer(run.for_text(tokenized), normalized, backoff)


def sample_lines(
    run: SavedLM, count: int, max_length: int, config: SamplingConfig, boundaries: str | None = None
) -> Iterator[str]:
    """Draw `count` lines from a language model, each cut off after `max_length` units; the same seed gives
    the same lines.

    `config`: seed, temperature, top_k and top_p; the rest of it is not used. `boundaries`: a mark to write
    between tokens, for models whose tokens consist of several units; ConfigError for other models. Also
    ConfigError for models that cannot be sampled, and for settings out of range."""
    config.check()
    model = run.model
    lines = model.sample(count, max_length, config.seed, config.temperature, config.top_k, config.top_p)
    if lines is not None:
        return map((boundaries or "").join, lines)
    if boundaries is not None:
        raise ConfigError(f"--boundaries: tokens of {run.config.type} models are single units; leave it out")
    if not isinstance(model, StepModel):
        raise ConfigError(f"{run.directory}: cannot draw lines from {run.config.type} models")
    config = replace(config, samples=1, max_length_factor=1.0, allow_unknown=False)
    text, size = run.text.for_text(tokenized=True), config.rows
    return (
        text.text(run.words.decode(line.words))
        for start in range(0, count, size)
        for [line] in sample(model, [range(max_length)] * min(size, count - start), config, start)
    )
