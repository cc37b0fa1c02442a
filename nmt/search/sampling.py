"""Translations drawn from the model's distribution (van Merriënboer 2018, section 4.4.3).

Each sentence has its own random numbers, so its samples depend only on the seed and its number in the input.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nmt.models.protocols import Source, State, StepModel
from nmt.search import FinishedHypothesis
from nmt.search.config import SamplingConfig
from nmt.search.hypotheses import History
from nmt.text.vocab import BOS, EOS, UNK

# The largest random number below 1 in single precision. A number that was rounded to 1 would draw the last
# word, even one of probability 0.
MOST_UNIFORM = 1 - 2**-24


@torch.no_grad()
def sample(
    model: StepModel[State], sources: Sequence[Source], config: SamplingConfig, first: int = 0
) -> list[list[FinishedHypothesis]]:
    """Draw `config.samples` translations of each sentence. `first`: the number of the first sentence in the
    whole input.

    log_prob and score are the model's log p, whatever the temperature. ConfigError for a setting out of
    range.
    """
    config.check()
    results: list[list[FinishedHypothesis]] = []
    size = max(1, config.rows // config.samples)
    for start in range(0, len(sources), size):
        results += sample_batch(model, sources[start : start + size], config, first + start)
    return results


def sample_batch(
    model: StepModel[State], sources: Sequence[Source], config: SamplingConfig, first: int
) -> list[list[FinishedHypothesis]]:
    """Draw the translations of a batch of sentences side by side; see `sample`."""
    device, count = model.device, config.samples
    longest = [max(1, math.ceil(config.max_length_factor * len(source))) for source in sources]
    numbers = [
        np.random.default_rng([config.seed, first + index]).random((limit, count))
        for index, limit in enumerate(longest)
    ]
    limits = torch.tensor(longest, device=device).repeat_interleave(count)
    drawn: list[list[FinishedHypothesis | None]] = [[None] * count for _ in sources]
    history = History()
    # Each live row is identified by sentence * count + number of the draw.
    draws = torch.arange(len(sources) * count, device=device)
    state = model.reorder(model.start(sources), draws // count)
    nodes, totals = torch.full_like(draws, -1), torch.zeros(len(draws), dtype=torch.float64, device=device)
    token_ids: Tensor | None = None
    step = 0
    while len(draws):
        log_probs, state = model.step(state, token_ids)
        at_limit = step >= limits[draws]
        uniform = torch.tensor(
            [
                0.5 if ended else numbers[draw_id // count][step, draw_id % count]
                for draw_id, ended in zip(draws.tolist(), at_limit.tolist(), strict=True)
            ]
        )
        chosen = draw(log_probs, uniform.to(device), config)
        chosen[at_limit] = EOS
        totals = totals + log_probs.gather(1, chosen[:, None])[:, 0]
        ends = chosen == EOS
        for row in ends.nonzero()[:, 0].tolist():
            draw_id, total = int(draws[row]), float(totals[row])
            drawn[draw_id // count][draw_id % count] = FinishedHypothesis(
                words=history.read(int(nodes[row]))[0],
                log_prob=total,
                score=total,
                complete=not bool(at_limit[row]),
            )
        live = (~ends).nonzero()[:, 0]
        token_ids, draws, totals = chosen[live], draws[live], totals[live]
        nodes = history.append(token_ids, nodes[live], None)
        state = model.reorder(state, live)
        step += 1
    return [[candidate for candidate in candidates if candidate is not None] for candidates in drawn]


def draw(log_probs: Tensor, uniform: Tensor, config: SamplingConfig) -> Tensor:
    """Choose the first word at which the cumulative sum of p^(1/temperature), truncated and normalized,
    exceeds a uniform random number: log p (R, V), numbers (R,) -> ids (R,). BOS is never drawn, UNK only with
    `allow_unknown`."""
    tempered = log_probs.double() / config.temperature
    tempered[:, [BOS] if config.allow_unknown else [BOS, UNK]] = -math.inf
    sums = torch.softmax(truncate(tempered, config.top_k, config.top_p), 1).cumsum(1)
    below_one = uniform[:, None].to(sums).clamp(max=MOST_UNIFORM)
    words = torch.searchsorted(sums, below_one * sums[:, -1:], right=True)[:, 0]
    return words.clamp_(max=sums.shape[1] - 1)  # for sums that are nan


def truncate(log_probs: Tensor, top_k: int, top_p: float) -> Tensor:
    """Leave only the likeliest words, and replace the log p of the others by -inf: (R, V) -> (R, V)

    `top_k`: how many (Fan et al. 2018); 0: all. `top_p`: the fewest whose p, normalized over what `top_k`
    left, sums to this or more (Holtzman et al. 2020); 1: all. Words as likely as the last one stay, too.
    log p need not be normalized."""
    if top_k:
        least = log_probs.topk(min(top_k, log_probs.shape[1]), 1).values[:, -1:]
        log_probs = log_probs.masked_fill(log_probs < least, -math.inf)
    if top_p < 1:
        p = torch.softmax(log_probs, 1)
        ordered = p.sort(1, descending=True).values
        last = (ordered.cumsum(1) < top_p).sum(1, keepdim=True).clamp_(max=p.shape[1] - 1)
        log_probs = log_probs.masked_fill(p < ordered.gather(1, last), -math.inf)
    return log_probs


def count_distinct(candidates: Sequence[FinishedHypothesis]) -> list[tuple[FinishedHypothesis, int]]:
    """Distinct draws with their counts, the likeliest first."""
    counts = Counter(tuple(candidate.words) for candidate in candidates)
    by_words = {tuple(candidate.words): candidate for candidate in candidates}
    return sorted(
        ((by_words[words], count) for words, count in counts.items()),
        key=lambda item: (-item[0].log_prob, item[0].words),
    )
