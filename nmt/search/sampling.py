"""Translations drawn from the model's distribution (section 4.4.3; Table 4.3 sorts such draws by their
probability).

Each sentence has random numbers of its own, so its samples depend on the seed and its number in the input
alone.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nmt.models.protocols import Source, State, StepModel
from nmt.search.beam import Candidate
from nmt.search.config import SamplingConfig
from nmt.search.hypotheses import History
from nmt.text.vocab import BOS, EOS, UNK


@torch.no_grad()
def sample(
    model: StepModel[State], sources: Sequence[Source], config: SamplingConfig, first: int = 0
) -> list[list[Candidate]]:
    """`samples` draws for each sentence, in the order drawn. `first`: the number of the first sentence in the
    whole input.

    log_prob and score are the model's log p, whatever the temperature. ConfigError for a setting out of
    range.
    """
    config.check()
    results: list[list[Candidate]] = []
    size = max(1, config.rows // config.samples)
    for start in range(0, len(sources), size):
        results += _sample(model, sources[start : start + size], config, first + start)
    return results


def _sample(
    model: StepModel[State], sources: Sequence[Source], config: SamplingConfig, first: int
) -> list[list[Candidate]]:
    device, count = model.device, config.samples
    longest = [max(1, math.ceil(config.max_length_factor * len(source))) for source in sources]
    numbers = [
        np.random.default_rng([config.seed, first + index]).random((limit, count))
        for index, limit in enumerate(longest)
    ]
    limits = torch.tensor(longest, device=device).repeat_interleave(count)
    drawn: list[list[Candidate | None]] = [[None] * count for _ in sources]
    history = History()
    # Of each live row: sentence * count + number of the draw.
    place = torch.arange(len(sources) * count, device=device)
    state = model.reorder(model.start(sources), place // count)
    nodes, totals = torch.full_like(place, -1), torch.zeros(len(place), dtype=torch.float64, device=device)
    token_ids: Tensor | None = None
    step = 0
    while len(place):
        log_probs, state = model.step(state, token_ids)
        at_limit = step >= limits[place]
        uniform = torch.tensor(
            [
                0.5 if ended else numbers[p // count][step, p % count]
                for p, ended in zip(place.tolist(), at_limit.tolist(), strict=True)
            ]
        )
        chosen = draw(log_probs, uniform.to(device), config.temperature, config.allow_unknown)
        chosen[at_limit] = EOS
        totals = totals + log_probs.gather(1, chosen[:, None])[:, 0]
        ends = chosen == EOS
        for row in ends.nonzero()[:, 0].tolist():
            at, total = int(place[row]), float(totals[row])
            drawn[at // count][at % count] = Candidate(
                words=history.read(int(nodes[row]))[0],
                log_prob=total,
                score=total,
                complete=not bool(at_limit[row]),
            )
        live = (~ends).nonzero()[:, 0]
        token_ids, place, totals = chosen[live], place[live], totals[live]
        nodes = history.append(token_ids, nodes[live], None)
        state = model.reorder(state, live)
        step += 1
    return [[candidate for candidate in candidates if candidate is not None] for candidates in drawn]


def draw(log_probs: Tensor, uniform: Tensor, temperature: float, allow_unknown: bool) -> Tensor:
    """The word at which the cumulative sum of p^(1/temperature) exceeds a number of [0, 1): (R, V), (R,) ->
    (R,)"""
    tempered = log_probs.double() / temperature
    tempered[:, [BOS] if allow_unknown else [BOS, UNK]] = -math.inf
    sums = torch.softmax(tempered, 1).cumsum(1)
    return torch.searchsorted(sums, uniform[:, None].to(sums) * sums[:, -1:], right=True)[:, 0].clamp_(
        max=sums.shape[1] - 1
    )


def distinct(candidates: Sequence[Candidate]) -> list[tuple[Candidate, int]]:
    """Each distinct draw once, with its count, the likeliest first."""
    counts = Counter(tuple(candidate.words) for candidate in candidates)
    by_words = {tuple(candidate.words): candidate for candidate in candidates}
    return sorted(
        ((by_words[words], count) for words, count in counts.items()),
        key=lambda item: (-item[0].log_prob, item[0].words),
    )
