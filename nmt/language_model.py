"""Any language model as one thing that scores lines: a run directory, an ARPA file, a binary file of KenLM.

lm = language_model.load("lm.arpa.gz")
for line in lm.score(["a b c", ""]):
    sum(line.log_probs)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from nmt import checkpoint, files
from nmt.checkpoint import SavedLM
from nmt.data.running import ChunkStream, running, sentences
from nmt.data.vocab import UNK
from nmt.errors import ConfigError
from nmt.lm import arpa, count
from nmt.lm.backoff import Shares
from nmt.lm.cslm import CSLM, FirstLayer, distinct, ngram_scores, ngrams
from nmt.lm.multiscale import MultiscaleLM
from nmt.lm.recurrent import RecurrentLM
from nmt.scoring import word_scores

STEPS = 200  # of running text at a time


@dataclass
class LineScores:
    """A line as the model reads it: log p, natural, of each unit and of the end of the line."""

    units: list[str]
    log_probs: list[float]
    known: list[bool]  # (units,) is the unit in the vocabulary?


class LanguageModel(Protocol):
    name: str
    vocabulary: int  # units with a probability of their own; 0 where the file does not tell

    def score(self, lines: Sequence[str], tokenized: bool = False) -> list[LineScores]: ...

    def log_z(self, lines: Sequence[str], tokenized: bool = False) -> list[float]: ...


class Counts:
    """An n-gram model: words are what stands between blanks."""

    def __init__(self, path: str) -> None:
        self.model = count.load(path)
        self.name = Path(path).name
        self.vocabulary = len(getattr(self.model, "words", [0, 0])) - 2

    def log_z(self, lines: Sequence[str], tokenized: bool = False) -> list[float]:
        return []

    def score(self, lines: Sequence[str], tokenized: bool = False) -> list[LineScores]:
        texts = [files.split_words(line) for line in lines]
        found = self.model.scores(texts)
        return [
            LineScores(text, scores.tolist(), list(map(self.model.knows, text)))
            for text, scores in zip(texts, found, strict=True)
        ]


class Neural:
    """A run. With lm.carry a line goes on from the state after the line before, of the last call too."""

    def __init__(self, run: SavedLM, normalized: bool = False, backoff: str = "") -> None:
        if normalized and not (isinstance(run.model, CSLM) and run.config.normalizer):
            raise ConfigError(
                f"--assume-normalized: {run.directory} is not a CSLM trained with lm.normalizer; its scores "
                "are no log p without log Z"
            )
        self.run, self.normalized, self.name = run, normalized, run.name
        self.vocabulary = len(run.words) - 2
        self.carried: Any = None
        self.shares = Shares(arpa.read(backoff), run.words.ids) if backoff else None

    def score(self, lines: Sequence[str], tokenized: bool = False) -> list[LineScores]:
        texts = [self.run.text.units(line, tokenized) for line in lines]
        ids = [self.run.words.encode(text) for text in texts]
        found = self.scores(ids)
        if self.shares:
            found = [
                np.add(scores, share).tolist()
                for scores, share in zip(found, self.shares.logs(texts), strict=True)
            ]
        return [
            LineScores(text, scores, [word != UNK for word in line])
            for text, scores, line in zip(texts, found, ids, strict=True)
        ]

    def log_z(self, lines: Sequence[str], tokenized: bool = False) -> list[float]:
        """|log Z| of each distinct context of some lines, by a CSLM trained with lm.normalizer; else
        nothing."""
        model = self.run.model
        if not isinstance(model, CSLM) or not self.run.config.normalizer or not lines:
            return []
        texts = [self.run.words.encode(self.run.text.units(line, tokenized)) for line in lines]
        return np.abs(log_normalizers(model, texts)).tolist()  # type: ignore[no-any-return]

    def scores(self, ids: Sequence[Sequence[int]]) -> list[list[float]]:
        model = self.run.model
        if isinstance(model, CSLM):
            if not ids:
                return []
            contexts, words = ngrams(ids, model.order)
            flat = ngram_scores(model, contexts, words, self.normalized)
            return [part.tolist() for part in np.split(flat, np.cumsum([len(text) + 1 for text in ids])[:-1])]
        if model.carries:
            return self.running(model, ids)
        return word_scores(model, [((), text) for text in ids])

    def running(self, model: RecurrentLM | MultiscaleLM, ids: Sequence[Sequence[int]]) -> list[list[float]]:
        parts = []
        for chunk in ChunkStream(running(sentences(ids)), 1, STEPS).batches(0):
            scores, self.carried = model.score_chunk(chunk.to(model.device), self.carried)
            parts.append(scores.double())
        flat = torch.cat(parts) if parts else torch.zeros(0)
        return [part.tolist() for part in flat.split([len(text) + 1 for text in ids])] if ids else []


def load(
    path: str, which: str = "best", device: str = "cpu", normalized: bool = False, backoff: str = ""
) -> LanguageModel:
    """`backoff`: an ARPA file that shares a network's p(UNK) among the words it does not know.

    ConfigError, DataError or CheckpointError, in one line, for what is no language model."""
    if Path(path).is_dir():
        return Neural(checkpoint.load_lm(path, which, device), normalized, backoff)
    if backoff:
        raise ConfigError(f"--backoff: {path} is an n-gram model, which backs off by itself")
    if normalized:
        raise ConfigError(
            f"--assume-normalized: {path} is an n-gram model, whose probabilities sum to one anyway"
        )
    return Counts(path)


@torch.no_grad()
def log_normalizers(model: CSLM, texts: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """log Z of each distinct context of some sentences: near 0 where scores may be taken for log p."""
    unique, _ = distinct(ngrams(texts, model.order)[0])
    first, parts = FirstLayer(model, unique), []
    for start in range(0, len(unique), STEPS):
        features = model.above(first.rows(start, start + STEPS))
        matrix: Any = model.output.words
        scores = features @ matrix.t()
        parts.append(
            (scores if model.output.words_bias is None else scores + model.output.words_bias)
            .logsumexp(1)
            .double()
            .cpu()
            .numpy()
        )
    return np.concatenate(parts) if parts else np.zeros(0)
