"""Any language model as one thing that scores lines: a run directory, an ARPA file, a binary file of KenLM.

>>> import nmt
>>> lm = nmt.load_language_model("lm.arpa")
>>> [line] = lm.score(["un garçon"])
>>> line.units
['un', 'garçon']
>>> len(line.log_probs)                    # natural log p of each unit and of the end of the line
3
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from nmt import files
from nmt.data.batches import Ids
from nmt.data.running import ChunkStream, running, sentences
from nmt.errors import ConfigError
from nmt.lines import check_lines
from nmt.lm.protocols import (
    Carried,
    NormalizedScores,
    RunningTextModel,
    TokenSampler,
    scorer_of,
)
from nmt.ngram import arpa
from nmt.ngram import count_model as count
from nmt.ngram.backoff import UnknownShares
from nmt.ngram.histories import Histories
from nmt.runs import checkpoint, mixture, set_up
from nmt.runs.checkpoint import SavedLM
from nmt.runs.line_scores import LineScorer, LineScores
from nmt.search.config import SamplingConfig
from nmt.search.sampling import sample
from nmt.search.steps import StepModel
from nmt.text.vocab import UNK

STEPS = 200  # of running text at a time


class CountLineScorer:
    """A count-based n-gram model: words are what stands between blanks."""

    carries = raw = False

    def __init__(self, path: str) -> None:
        self.model, self.path = count.load_count_model(path), Path(path)
        self.name = self.path.name
        self.vocab_size = self.model.vocab_size

    def __repr__(self) -> str:
        return f"<LineScorer {self.name}: n-gram model, {max(0, self.vocab_size):,} words>"

    def files(self) -> list[Path]:
        """See LineScorer."""
        return [self.path]

    def log_z(self, lines: Sequence[str], tokenized: bool = False) -> list[float]:
        """Nothing: probabilities sum to one anyway."""
        return []

    def units(self, lines: Sequence[str], tokenized: bool = False) -> list[list[str]]:
        """The words of each line."""
        check_lines(lines)
        return [files.split_words(line) for line in lines]

    def score(self, lines: Sequence[str], tokenized: bool = False) -> list[LineScores]:
        """log p of each line, word by word."""
        texts = self.units(lines)
        found = self.model.scores(texts)
        return [
            LineScores(units=text, log_probs=scores.tolist(), known=list(map(self.model.knows, text)))
            for text, scores in zip(texts, found, strict=True)
        ]


class NeuralLineScorer:
    """A run. With lm.carry a line continues from the state after the line before, also from call to call."""

    def __init__(self, run: SavedLM, normalized: bool = False, backoff: str = "") -> None:
        """`normalized`, `backoff`: see load_language_model."""
        self.run, self.name, self.vocab_size = run, run.name, len(run.words) - 2
        self.scorer = scorer_of(run.model, normalized, run.directory)
        self.carried: Carried = None
        self.shares = UnknownShares(arpa.read(backoff), run.words.ids) if backoff else None

    def __repr__(self) -> str:
        return f"<LineScorer {self.run.description}>"

    @property
    def carries(self) -> bool:
        """See LineScorer: with lm.carry."""
        return self.run.model.carries

    @property
    def raw(self) -> bool:
        """Whether the run reads raw text."""
        return self.run.text.raw

    def files(self) -> list[Path]:
        """See LineScorer."""
        return self.run.files()

    def units(self, lines: Sequence[str], tokenized: bool = False) -> list[list[str]]:
        """The units of each line."""
        check_lines(lines)
        return [self.run.text.units(line, tokenized) for line in lines]

    def score(self, lines: Sequence[str], tokenized: bool = False) -> list[LineScores]:
        """log p of each line, unit by unit."""
        texts = self.units(lines, tokenized)
        ids = self.run.encode(texts)
        found = self.score_ids(ids)
        if self.shares:
            found = [
                np.add(scores, share).tolist()
                for scores, share in zip(found, self.shares.logs(texts), strict=True)
            ]
        return [
            LineScores(
                units=text, log_probs=scores, known=[UNK != unit < len(self.run.words) for unit in line]
            )
            for text, scores, line in zip(texts, found, ids, strict=True)
        ]

    def score_ids(self, texts: Sequence[Ids]) -> list[list[float]]:
        """log p of each unit of each text and of its end symbol."""
        model = self.run.model
        if self.carries:
            assert isinstance(model, RunningTextModel)
            return self.score_running(model, texts)
        return self.scorer.score_texts(texts)

    def score_running(self, model: RunningTextModel, texts: Sequence[Ids]) -> list[list[float]]:
        """The same of running text, continued from the text before."""
        parts = [torch.zeros(0, dtype=torch.float64)]
        for chunk in ChunkStream(running(sentences(texts)), 1, STEPS).batches(0):
            scores, self.carried = model.score_running(chunk.to(model.device), self.carried)
            parts.append(scores.double().cpu())
        return [part.tolist() for part in torch.split(torch.cat(parts), [len(text) + 1 for text in texts])]

    def log_z(self, lines: Sequence[str], tokenized: bool = False) -> list[float]:
        """|log Z| of each distinct context of some lines, for a network trained with lm.normalizer; else
        nothing."""
        model, units = self.run.model, self.units(lines, tokenized)
        if not isinstance(model, NormalizedScores) or not model.self_normalized or not lines:
            return []
        texts = self.run.encode(units)
        found: list[float] = np.abs(model.log_normalizers(texts)).tolist()
        return found


def load_language_model(
    path: str | Path,
    which: str = "best",
    device: str = "cpu",
    normalized: bool = False,
    backoff: str = "",
) -> LineScorer:
    """A language model from a run directory, an ARPA file (.gz too), a KenLM binary or a mixture of them that
    nmt-interpolate made.

    `which`: the checkpoint of a run: best, last or the number of an update. `normalized`: take a network's
    log Z as 0. `backoff`: an ARPA file that shares a network's p(UNK) among the words it does not know.

    ConfigError, DataError or CheckpointError, in one line, for what is not a language model. Torch computes
    as it does in nmt-score: with the matrix back end of the run.

    >>> lm = load_language_model("runs/lm")
    >>> lm
    <LineScorer lm@200: cslm of fr, 298 units, 9,234 parameters>
    >>> [line] = lm.score(["Un garçon ne suit pas l'homme."])
    >>> round(sum(line.log_probs), 2)
    -21.26
    """
    set_up.as_commands_do(path, device)
    return line_scorer(path, which, device, normalized, backoff)


def line_scorer(
    path: str | Path,
    which: str = "best",
    device: str = "cpu",
    normalized: bool = False,
    backoff: str = "",
) -> LineScorer:
    """As `load_language_model`, with torch as it is: for commands, which have set it up."""
    if Path(path).is_dir():
        return NeuralLineScorer(checkpoint.load_lm(path, which, device), normalized, backoff)
    if mixture.is_mixture(path):
        if normalized or backoff:
            option = "--backoff" if backoff else "--assume-normalized"
            raise ConfigError(f"{option}: {path} is a mixture; this is for a single network")
        return mixture_scorer(path, device)
    if backoff:
        raise ConfigError(f"--backoff: {path} is an n-gram model, which backs off by itself")
    if normalized:
        raise ConfigError(
            f"--assume-normalized: {path} is an n-gram model, whose probabilities sum to one anyway"
        )
    return CountLineScorer(str(path))


def mixture_scorer(path: str | Path, device: str = "cpu") -> mixture.MixtureScorer:
    """The models of a mixture as one; see nmt/runs/mixture.py. DataError for a damaged file, or one whose
    models have changed."""
    found = mixture.read(path)
    members = [
        line_scorer(model.path, "best" if model.step is None else str(model.step), device)
        for model in found.models
    ]
    histories = Histories.load(found.contexts) if found.contexts else None
    return mixture.MixtureScorer(Path(path).name, members, np.array(found.weights), found.edges, histories)


def sample_lines(
    run: SavedLM,
    count: int,
    max_length: int,
    seed: int,
    temperature: float = 1.0,
    boundaries: str | None = None,
) -> Iterator[str]:
    """Lines drawn from a run, each cut off after `max_length` units; the same seed gives the same lines.

    `boundaries`: put this between the tokens of a multiscale model. ConfigError for it where units are no
    tokens.
    """
    model = run.model
    if isinstance(model, TokenSampler):
        return map((boundaries or "").join, model.sample(count, max_length, seed, temperature))
    if boundaries is not None:
        raise ConfigError("--boundaries: only multiscale models have tokens of several units")
    if not isinstance(model, StepModel):
        raise ConfigError(f"{run.directory}: {run.config.type} models cannot be sampled, they have no `step`")
    config = SamplingConfig(samples=1, temperature=temperature, seed=seed, max_length_factor=1.0)
    drawn = sample(model, [range(max_length)] * count, config)
    return (run.text.text(run.words.decode(line.words), tokenized=True) for [line] in drawn)
