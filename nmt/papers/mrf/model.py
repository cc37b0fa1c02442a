"""A chain-structured Markov random field over words (Jernite 2018, chapter 4): the model, its training, its
file, and the feature `mrf` of phrase tables and n-best lists.

A text is one ring of N symbols: the words of each line, then K separators, so that lines are independent.
Potentials join each symbol to the K symbols after it:

    log p(t) = Σ_i (θ0(t_i) + Σ_l θ^l(t_i, t_{i+l})) - A(θ),    θ^l(s, t) = U_s · W^l_t

A(θ), the log of the sum over all texts, is intractable; `tighten` bounds it. Given all others, a symbol
depends on its 2K neighbors only, and its probability is a softmax over the vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.config import settings
from nmt.errors import CheckpointError, ConfigError
from nmt.papers.mrf import MRFConfig
from nmt.runs.checkpoint import load_tensors
from nmt.text.tokenize import unescape
from nmt.text.vocab import EOS, Vocab
from smt_bridge.features.base import PairFeature, SideReader, Values, WordPairs, digest
from smt_bridge.features.registry import FeatureSettings, FeatureSpec

# ---- model -------------------------------------------------------------------------------------------------


Ids = Sequence[int]
NONE = -1  # in place of a neighbor: no potential
ROWS = 2048  # symbols whose probabilities are computed at a time


class ChainMRF(nn.Module):
    """The potentials of the field. V words, K distances, D dimensions; N symbols of a text."""

    def __init__(self, config: MRFConfig, vocab_size: int) -> None:
        super().__init__()
        self.config, self.order = config, config.order
        width = config.dimension
        self.unary = nn.Parameter(torch.zeros(vocab_size))  # θ0, (V,)
        self.left = nn.Parameter(torch.empty(vocab_size, width))  # U, (V, D)
        self.right = nn.Parameter(torch.empty(config.order, vocab_size, width))  # W, (K, V, D)
        generator = torch.Generator().manual_seed(config.seed)
        for part in (self.left, self.right):
            nn.init.normal_(part, std=width**-0.5 / 4, generator=generator)

    def edges(self) -> Tensor:
        """θ^l(s, t): (K, V, V)"""
        return self.left @ self.right.transpose(1, 2)

    def conditional(self, preceding: Tensor, following: Tensor) -> Tensor:
        """log p of every word given its neighbors: (N, K), (N, K) -> (N, V). Neighbor l of `preceding` is l
        positions before the word, that of `following` l positions after it; NONE stands for a missing
        neighbor."""
        left = self.left[preceding.clamp(min=0)] * (preceding >= 0)[..., None]  # (N, K, D)
        distances = torch.arange(self.order, device=preceding.device)
        right = (self.right[distances, following.clamp(min=0)] * (following >= 0)[..., None]).sum(1)  # (N, D)
        context = torch.cat([left.flatten(1), right], 1)  # (N, (K + 1) D)
        weights = torch.cat([*self.right, self.left], 1)  # (V, (K + 1) D)
        return torch.log_softmax(context @ weights.T + self.unary, -1)

    @torch.no_grad()
    def score_sentences(self, texts: Sequence[Ids], ends: bool = True) -> NDArray[np.float64]:
        """Pseudo-log-likelihood of each text, Σ log p(t_i | its neighbors), natural: (texts,). Each text
        forms a ring with K separators, which are scored too; without `ends`, only its words are scored, with
        nothing before and after them."""
        contexts = [windows(ring([text], self.order) if ends else text, self.order, ends) for text in texts]
        sizes = [len(words) for words, _, _ in contexts]
        if not sum(sizes):
            return np.zeros(len(texts))
        words, preceding, following = (np.concatenate(part) for part in zip(*contexts, strict=True))
        # N-best lists repeat themselves: each distinct window is computed once.
        distinct, inverse = np.unique(
            np.column_stack([words, preceding, following]), axis=0, return_inverse=True
        )
        values = []
        for rows in torch.from_numpy(distinct).split(ROWS):
            log_probs = self.conditional(rows[:, 1 : 1 + self.order], rows[:, 1 + self.order :])
            values.append(log_probs.gather(1, rows[:, :1])[:, 0].double())
        owner = np.repeat(np.arange(len(texts)), sizes)
        return np.asarray(
            np.bincount(owner, torch.cat(values).numpy()[inverse.ravel()], len(texts)), np.float64
        )


def ring(lines: Sequence[Ids], order: int) -> list[int]:
    """Concatenate the lines of a text, each followed by K separators."""
    return [symbol for line in lines for symbol in [*line, *[EOS] * order]]


def windows(
    symbols: Ids, order: int, closed: bool = True
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The symbols, (N,), and the K = `order` symbols before and after each, nearest first, (N, K) each.
    `closed`: the symbols form a ring; otherwise NONE stands for neighbors beyond the ends."""
    row = np.array(symbols, np.int64)
    positions = np.arange(len(row))[:, None]
    steps = np.arange(1, order + 1)

    def look_up(positions: NDArray[np.int64]) -> NDArray[np.int64]:
        inside = (positions >= 0) & (positions < len(row)) | closed
        return np.where(inside, row[positions % len(row)], NONE) if len(row) else positions

    return row, look_up(positions - steps), look_up(positions + steps)


# ---- lifted ------------------------------------------------------------------------------------------------
# The lifted tree-reweighted upper bound of A(θ) (Jernite 2018, section 4.3, equations 4.9 to 4.13).
#
# The ring of N symbols is covered by K + 1 forests of stars, in which a symbol and the K after it are joined;
# each edge is in exactly one forest. All stars are alike, so one is enough, whatever N is:
#
#     A(θ) <= N / (K + 1) · log Z(δ),    for every δ
#
# where Z(δ) is the partition function of a star with potentials θ0 - Σ_l δ^l at its center, θ0 + δ^l at leaf
# l and (K + 1) θ^l on the edge to it. The bound is convex in δ (K, V), and tightest where leaves and center
# have the same marginals.


FIRST_STEP = 1e3  # α = 10³ / 2^t after t steps that did not lower the bound


def star_pass(unary: Tensor, edges: Tensor, delta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log Z of a star, (), the marginals of its center, (V,), and the messages of its leaves before they are
    summed, (K, V, V): center, then leaf. One pass of belief propagation, from the leaves to the center."""
    joint = (len(edges) + 1) * edges + (unary + delta)[:, None, :]
    center = unary - delta.sum(0) + joint.logsumexp(2).sum(0)
    return center.logsumexp(0), center.softmax(0), joint


@dataclass
class TightBound:
    """The tightest bound found: its δ, (K, V), and log Z of a star before the first and after each step."""

    delta: Tensor
    values: list[float]


@torch.no_grad()
def tighten(
    unary: Tensor, edges: Tensor, steps: int, start: Tensor | None = None, tolerance: float = 1e-5
) -> TightBound:
    """Lower the bound by gradient descent on δ, from 0 or from `start` (K, V), for at most `steps` steps, or
    until no marginal of a leaf differs from the center's by more than `tolerance`. A step that does not lower
    the bound is taken back, and all later steps are half as long. `unary` (V,) and `edges` (K, V, V): the
    potentials."""
    delta = torch.zeros(len(edges), len(unary), dtype=unary.dtype) if start is None else start
    value, slope = star_slope(unary, edges, delta)
    values, rate = [value], FIRST_STEP
    for _ in range(steps):
        if slope.abs().max() <= tolerance:
            break
        trial = delta - rate * slope
        trial_value, trial_slope = star_slope(unary, edges, trial)
        if trial_value < value:
            delta, value, slope = trial, trial_value, trial_slope
        else:
            rate /= 2
        values.append(value)
    return TightBound(delta, values)


def star_slope(unary: Tensor, edges: Tensor, delta: Tensor) -> tuple[float, Tensor]:
    """log Z of a star, and its gradient for δ: marginals of leaves less those of the center, (K, V)
    (Jernite 2018, eq. 4.13)."""
    value, center, joint = star_pass(unary, edges, delta)
    leaves = torch.stack([center @ edge.softmax(1) for edge in joint])
    return float(value), leaves - center


# ---- training ----------------------------------------------------------------------------------------------
# Stochastic on the pseudo-likelihood, or on the lifted bound.


# Gets the number of epochs or rounds done, and the objective: natural log per symbol.
ReportRound = Callable[[int, float], None]


def train_field(config: MRFConfig, lines: Sequence[Ids], vocab_size: int, report: ReportRound) -> ChainMRF:
    """Train a Markov random field on lines of ids below `vocab_size`. The unary potentials start as logs of
    smoothed word frequencies. `report` is called after each epoch, or each round for `bound`."""
    model = ChainMRF(config, vocab_size)
    symbols = ring(lines, config.order)
    symbols += [EOS] * (-len(symbols) % (config.order + 1))  # so that stars cover the ring
    counts = torch.bincount(torch.tensor(symbols), minlength=vocab_size)
    model.unary.data = torch.log((counts + 0.1) / len(symbols))
    {"pseudo-likelihood": maximize_pseudo_likelihood, "bound": maximize_bound}[config.objective](
        model, symbols, report
    )
    return model


def maximize_pseudo_likelihood(model: ChainMRF, symbols: Ids, report: ReportRound) -> None:
    """Minimize -log p of each symbol given its neighbors by Adam, changing the model; reports each epoch."""
    config = model.config
    words, preceding, following = map(torch.from_numpy, windows(symbols, config.order))
    optimizer = torch.optim.Adam(model.parameters(), config.learning_rate)
    updates = config.epochs * -(-len(words) // config.batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: 1 - done / updates)
    rng = np.random.default_rng(config.seed)
    for epoch in range(1, config.epochs + 1):
        total = 0.0
        for rows in torch.from_numpy(rng.permutation(len(words))).split(config.batch_size):
            log_probs = model.conditional(preceding[rows], following[rows])
            loss = -log_probs.gather(1, words[rows][:, None]).sum()
            optimizer.zero_grad()
            (loss / len(rows)).backward()
            optimizer.step()
            schedule.step()
            total -= loss.item()
        report(epoch, total / len(words))


def maximize_bound(model: ChainMRF, symbols: Ids, report: ReportRound) -> None:
    """Tighten the bound and maximize it by L-BFGS in turn, changing the model; reports each round."""
    config, observed = model.config, Moments(symbols, model.order)
    delta: Tensor | None = None
    for done in range(1, config.rounds + 1):
        delta = tighten(model.unary.detach(), model.edges().detach(), config.dual_steps, delta).delta
        optimizer = torch.optim.LBFGS(
            model.parameters(), max_iter=config.lbfgs_steps, line_search_fn="strong_wolfe"
        )

        def loss(delta: Tensor = delta, optimizer: torch.optim.LBFGS = optimizer) -> float:
            optimizer.zero_grad()
            value = -lower_bound(model, observed, delta)
            value.backward()
            return value.item()

        optimizer.step(loss)
        with torch.no_grad():
            report(done, lower_bound(model, observed, delta).item())


def lower_bound(model: ChainMRF, observed: "Moments", delta: Tensor) -> Tensor:
    """A lower bound of log p(text) / N (Jernite 2018, eq. 4.2): (). `delta` (K, V): see `tighten`."""
    bound = star_pass(model.unary, model.edges(), delta)[0] / (model.order + 1)
    return observed.mean_potential(model) - bound


class Moments:
    """The words of a ring, and the relative frequency of each pair of words at each distance."""

    def __init__(self, symbols: Ids, order: int) -> None:
        self.words, _, after = windows(symbols, order)
        self.pairs = []  # of each distance: words, words after them, relative frequencies
        for row in after.T:
            distinct, counts = np.unique(np.stack([self.words, row]), axis=1, return_counts=True)
            self.pairs.append((*torch.from_numpy(distinct), torch.from_numpy(counts / len(row))))

    def mean_potential(self, model: ChainMRF) -> Tensor:
        """Σ_i (θ0(t_i) + Σ_l θ^l(t_i, t_{i+l})) / N: ()"""
        total = model.unary[torch.from_numpy(self.words)].mean()
        for (first, second, shares), right in zip(self.pairs, model.right, strict=True):
            total = total + shares.to(right.dtype) @ (model.left[first] * right[second]).sum(1)
        return total


# ---- file --------------------------------------------------------------------------------------------------
# Settings, vocabulary and potentials in one file, which holds no code.

FORMAT = "nmt-mrf 1"


def field_bytes(model: ChainMRF, vocab: Vocab) -> bytes:
    """The content of the file of a model, with its settings and its vocabulary; see `load_field`."""
    content = {
        "format": FORMAT,
        "settings": asdict(model.config),
        "counts": {word: vocab.counts[word] for word in vocab.ids},
        "weights": model.state_dict(),
    }
    stream = BytesIO()
    torch.save(content, stream)
    return stream.getvalue()


def load_field(path: Path) -> tuple[ChainMRF, Vocab]:
    """Read a model and its vocabulary. CheckpointError for a file that is missing, damaged or no model."""
    content = load_tensors(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{path}: is not a Markov random field of nmt-mrf ({FORMAT})")
    try:
        config = MRFConfig(**content["settings"])
        settings.check(config)
        vocab = Vocab(content["counts"], len(content["counts"]))
        model = ChainMRF(config, len(vocab))
        model.load_state_dict(content["weights"])
    except (KeyError, TypeError, AttributeError, RuntimeError, ConfigError) as error:
        raise CheckpointError(f"{path}: damaged; copy it again, or train it again") from error
    return model, vocab


# ---- feature -----------------------------------------------------------------------------------------------


class MarkovRandomField(PairFeature):
    """The pseudo-log-likelihood of the target, Σ log p(word | its neighbors). A sentence is scored with the
    separators around it, a phrase by its words alone. Moses' escapes are undone."""

    def __init__(self, path: Path, model: ChainMRF, vocab: Vocab) -> None:
        self.path, self.model, self.vocab = path, model, vocab

    @classmethod
    def load(cls, spec: FeatureSpec, settings: FeatureSettings) -> "MarkovRandomField":
        """Load the feature from a file written by nmt-mrf. CheckpointError as from `load_field`."""
        return cls(Path(spec.path), *load_field(Path(spec.path)))

    def identity(self) -> str:
        return digest("mrf", [self.path])

    def readers(self) -> dict[str, SideReader]:
        """Read only the target side, as words of the vocabulary."""
        return {"target": SideReader(cut=list, vocabulary=self.vocab.ids)}

    def score(self, pairs: WordPairs) -> Values:
        """Score the target side of each pair, in natural logarithms."""
        texts = [self.vocab.encode(list(map(unescape, words))) for words in pairs.targets]
        return self.model.score_sentences(texts, ends=pairs.whole)
