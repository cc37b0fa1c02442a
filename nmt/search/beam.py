"""Beam search as in section 6.4.2, over many sentences at once: the result for a sentence does not depend on its neighbours.

At each step the s best continuations of a sentence are kept; each one that ends is set aside and makes s smaller by one; the
search of a sentence stops at s = 0 or after 3 words for each source word. UNK is never produced. The finished hypotheses
are ranked by log probability over length. If nothing has finished, the best unfinished ones are ended where they stand.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.data.batches import Ids
from nmt.data.vocab import BOS, EOS, UNK
from nmt.errors import ConfigError
from nmt.search import penalties
from nmt.search.steps import StepModel


@dataclass
class BeamConfig:
    beam_size: int = 10  # hypotheses kept; as in the papers
    normalize: str = "length"  # length | none | gnmt
    max_length_factor: float = 3.0  # at most this many words for each source word
    min_length_factor: float = 0.0  # no end before this many words for each source word; the authors' code uses 0.5
    rows: int = 100  # live hypotheses in a batch: keeps the scores of 30k words in the processor's cache

    def check(self) -> None:
        if self.beam_size < 1:
            raise ConfigError(f"beam size: {self.beam_size} is too small, expected 1 or more")
        if self.max_length_factor <= 0 or not 0 <= self.min_length_factor <= self.max_length_factor:
            raise ConfigError("length factors: expected 0 <= minimum <= maximum and maximum > 0")
        penalties.by_name(self.normalize)


@dataclass
class Candidate:
    """A finished translation: ids without the end symbol, natural log p with it, and the score it is ranked by."""

    words: list[int]
    log_prob: float
    score: float
    complete: bool = True  # false: the fallback, ended by the length limit


class _History:
    """Words and parents of all rows of all steps, to read a hypothesis back from its last row."""

    def __init__(self) -> None:
        self.words: list[list[int]] = []
        self.parents: list[list[int]] = []

    def append(self, words: Tensor, parents: Tensor) -> None:
        self.words.append(words.tolist())
        self.parents.append(parents.tolist())

    def read(self, row: int) -> list[int]:
        words = []
        for step in range(len(self.words) - 1, -1, -1):
            words.append(self.words[step][row])
            row = self.parents[step][row]
        return words[::-1]


@torch.no_grad()
def beam_search(model: StepModel, sources: Sequence[Ids], config: BeamConfig) -> list[list[Candidate]]:
    """The finished hypotheses of each sentence, best first; at most `beam_size` of them and at least one."""
    device = model.device
    count = len(sources)
    limits = torch.tensor([max(1, math.ceil(config.max_length_factor * len(source))) for source in sources], device=device)
    minimum = torch.tensor([math.ceil(config.min_length_factor * len(source)) for source in sources], device=device)
    finished: list[list[Candidate]] = [[] for _ in sources]
    history = _History()
    rank = penalties.by_name(config.normalize)

    state = model.start(sources)
    sentence = torch.arange(count, device=device)  # of each live row; rows of a sentence are neighbours, the best first
    totals = torch.zeros(count, dtype=torch.float64, device=device)  # log p of each live row
    widths = torch.full((count,), config.beam_size, device=device)
    words: Tensor | None = None
    step = 0
    while len(sentence):
        log_probs, state = model.step(state, words)  # (R, V)
        log_probs = forbid(log_probs, step < minimum[sentence])
        best = expand(log_probs, totals, sentence, widths)
        for row, total in zip(best.parent[best.ends].tolist(), best.total[best.ends].tolist(), strict=True):
            text = history.read(row)
            finished[int(sentence[row])].append(Candidate(text, total, rank(total, len(text) + 1)))
        widths.index_add_(0, sentence[best.parent[best.ends]], torch.full_like(best.parent[best.ends], -1))
        at_limit = limits[sentence] <= step
        for index in sentence[at_limit].unique().tolist():
            if not finished[index]:
                finished[index] = fallback(history, log_probs, totals, sentence == index, rank)
        live = ~best.ends & ~at_limit[best.parent] & (widths[sentence[best.parent]] > 0)
        parent, words = best.parent[live], best.word[live]
        history.append(words, parent)
        totals, sentence = best.total[live], sentence[parent]
        state = model.reorder(state, parent)
        step += 1
    nothing = [Candidate([], -math.inf, -math.inf, complete=False)]  # only when no score is a number
    return [sorted(candidates, key=lambda candidate: -candidate.score) or nothing for candidates in finished]


def forbid(log_probs: Tensor, too_short: Tensor) -> Tensor:
    """<s> and UNK never follow; the end symbol does not in rows that are too short: (R, V), (R,) -> (R, V)"""
    log_probs[:, [BOS, UNK]] = -math.inf
    log_probs[too_short, EOS] = -math.inf
    return log_probs


@dataclass
class Expansion:
    """The kept continuations of all sentences, grouped by sentence, the best first: each field is (K,)."""

    parent: Tensor  # row it continues
    word: Tensor
    total: Tensor  # log p
    ends: Tensor  # whether the word is the end symbol


def expand(log_probs: Tensor, totals: Tensor, sentence: Tensor, widths: Tensor) -> Expansion:
    """The widths[i] best continuations of each sentence i: (R, V), (R,), (R,), (S,)"""
    R, V = log_probs.shape
    width = int(widths.max())
    each = min(width, V)
    values, words = log_probs.topk(each)  # (R, each): no sentence can need more from one row
    _, group, sizes = sentence.unique_consecutive(return_inverse=True, return_counts=True)
    starts = sizes.cumsum(0) - sizes
    slot = torch.arange(R, device=sentence.device) - starts[group]
    rows = int(sizes.max())
    grid = totals.new_full((len(sizes), rows, each), -math.inf)
    grid[group, slot] = totals[:, None] + values
    total, flat = grid.view(len(sizes), -1).topk(min(width, rows * each))
    allowed = widths[sentence[starts]]
    kept = (torch.arange(total.shape[1], device=total.device) < allowed[:, None]) & (total > -math.inf)
    parent = (starts[:, None] + flat // each).clamp_(max=R - 1)[kept]
    word = words[parent, (flat % each)[kept]]
    return Expansion(parent, word, total[kept], word == EOS)


def fallback(history: _History, log_probs: Tensor, totals: Tensor, mine: Tensor, rank: Callable[[float, int], float]) -> list[Candidate]:
    """All rows of one sentence, ended where they stand, with the probability of that end in their scores."""
    candidates = []
    for row in mine.nonzero()[:, 0].tolist():
        text = history.read(row)
        total = float(totals[row] + log_probs[row, EOS])
        candidates.append(Candidate(text, total, rank(total, len(text) + 1), complete=False))
    return candidates


def search(model: StepModel, sources: Sequence[Ids], config: BeamConfig) -> list[list[Candidate]]:
    """`beam_search` over any number of sentences: the longest first, in batches of about `rows` hypotheses, results in order."""
    results: list[list[Candidate]] = [[] for _ in sources]
    for batch in batches(sources, max(1, config.rows // config.beam_size)):
        for index, candidates in zip(batch, beam_search(model, [sources[i] for i in batch], config), strict=True):
            results[index] = candidates
    return results


def batches(sources: Sequence[Ids], size: int) -> Iterator[list[int]]:
    """Indices of sentences of like length."""
    order = sorted(range(len(sources)), key=lambda index: -len(sources[index]))
    for start in range(0, len(order), size):
        yield order[start : start + size]
