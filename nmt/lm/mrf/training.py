"""Training of a Markov random field: stochastic on its pseudo-likelihood, or on the lifted bound."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from nmt.lm.mrf import lifted
from nmt.lm.mrf.config import MRFConfig
from nmt.lm.mrf.model import ChainMRF, Ids, ring, windows
from nmt.text.vocab import EOS

Report = Callable[[int, float], None]  # steps done, and the objective: natural log per symbol


def train(config: MRFConfig, lines: Sequence[Ids], vocab_size: int, report: Report) -> ChainMRF:
    """A model of the lines, as ids. It starts from the frequencies of words."""
    model = ChainMRF(config, vocab_size)
    symbols = ring(lines, config.order)
    symbols += [EOS] * (-len(symbols) % (config.order + 1))  # so that stars cover the ring
    counts = torch.bincount(torch.tensor(symbols), minlength=vocab_size)
    model.unary.data = torch.log((counts + 0.1) / len(symbols))
    {"pseudo-likelihood": by_pseudo_likelihood, "bound": by_bound}[config.objective](model, symbols, report)
    return model


def by_pseudo_likelihood(model: ChainMRF, symbols: Ids, report: Report) -> None:
    """Adam on -log p of each symbol given its neighbors; reports each epoch."""
    config = model.config
    words, before, after = map(torch.from_numpy, windows(symbols, config.order))
    optimizer = torch.optim.Adam(model.parameters(), config.learning_rate)
    updates = config.epochs * -(-len(words) // config.batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: 1 - done / updates)
    rng = np.random.default_rng(config.seed)
    for epoch in range(1, config.epochs + 1):
        total = 0.0
        for rows in torch.from_numpy(rng.permutation(len(words))).split(config.batch_size):
            log_probs = model.conditional(before[rows], after[rows])
            loss = -log_probs.gather(1, words[rows][:, None]).sum()
            optimizer.zero_grad()
            (loss / len(rows)).backward()
            optimizer.step()
            schedule.step()
            total -= loss.item()
        report(epoch, total / len(words))


def by_bound(model: ChainMRF, symbols: Ids, report: Report) -> None:
    """Algorithm 4.2: tighten the bound (4.1), then maximize it for a few steps of L-BFGS, in turns; reports
    each round."""
    config, observed = model.config, Moments(symbols, model.order)
    delta: Tensor | None = None
    for done in range(1, config.rounds + 1):
        delta = lifted.tighten(model.unary.detach(), model.edges().detach(), config.dual_steps, delta).delta
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
    """A lower bound of log p(text) / N (equation 4.2): ()"""
    bound = lifted.log_z(model.unary, model.edges(), delta) / (model.order + 1)
    return observed.mean_potential(model) - bound


class Moments:
    """How often each word, and each pair of words at each distance, occurs in a ring."""

    def __init__(self, symbols: Ids, order: int) -> None:
        self.words, _, after = windows(symbols, order)
        self.pairs = []  # of each distance: words, words after them, relative frequencies
        for row in after.T:
            found, counts = np.unique(np.stack([self.words, row]), axis=1, return_counts=True)
            self.pairs.append((*torch.from_numpy(found), torch.from_numpy(counts / len(row))))

    def mean_potential(self, model: ChainMRF) -> Tensor:
        """Σ_i (θ0(t_i) + Σ_l θ^l(t_i, t_{i+l})) / N: ()"""
        total = model.unary[torch.from_numpy(self.words)].mean()
        for (one, other, shares), right in zip(self.pairs, model.right, strict=True):
            total = total + shares.to(right.dtype) @ (model.left[one] * right[other]).sum(1)
        return total
