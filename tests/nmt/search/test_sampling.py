"""Draws against the probabilities they are drawn from."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.runs import exported
from nmt.scoring import word_scores
from nmt.search.config import SamplingConfig
from nmt.search.sampling import count_distinct, draw, sample, truncate
from nmt.text.vocab import UNK


def make(seed: int = 0) -> RNNTranslator:
    torch.manual_seed(seed)
    return (
        RNNTranslator(
            RNNConfig(encoder="birnn", attention=5, embedding=6, hidden=7, maxout=4, init_scale=1.0), 7, 6
        )
        .double()
        .eval()
    )


def test_frequencies_are_probabilities() -> None:
    """4,000 draws of a sentence: each sentence that can be expected 20 times or more comes as often as p
    says, within 5 deviations."""
    model, count = make(), 4000
    drawn = sample(
        model, [[3, 4]], SamplingConfig(samples=count, allow_unknown=True, max_length_factor=20, rows=count)
    )[0]
    for words, found in Counter(tuple(candidate.words) for candidate in drawn).most_common(8):
        # <s> is never drawn: what it would have had is shared out at each step.
        p = math.exp(
            sum(math.log(math.exp(v) / (1 - b)) for v, b in zip(*with_bos(model, list(words)), strict=True))
        )
        assert abs(found - count * p) < 5 * math.sqrt(count * p * (1 - p)) + 1


def with_bos(model: RNNTranslator, words: list[int]) -> tuple[list[float], list[float]]:
    """log p of each word, and p(<s>) in its place."""
    state, before, bos = model.start([[3, 4]]), None, []
    with torch.no_grad():
        for word in [*words, 1]:
            log_probs, state = model.step(state, before)
            bos.append(float(log_probs[0, 0].exp()))
            before = torch.tensor([word])
    return word_scores(model, [([3, 4], words)])[0], bos


def test_draw_by_hand() -> None:
    """p of ids 1, 3, 4 are .2, .3, .5 (UNK and <s> have none): running sums .2, .2, .5, 1."""
    log_probs = torch.tensor([[0.9, 0.2, 0.8, 0.3, 0.5]]).log().repeat(5, 1)
    numbers = torch.tensor([0.0, 0.19, 0.21, 0.49, 0.51])
    assert draw(log_probs, numbers, SamplingConfig()).tolist() == [1, 1, 3, 3, 4]
    without = log_probs.index_fill(1, torch.tensor([4]), -math.inf)
    assert draw(without, torch.ones(5), SamplingConfig()).tolist() == [3] * 5  # numbers that round to 1
    cold = draw(log_probs, numbers.clamp(min=0.01), SamplingConfig(temperature=0.01))
    assert cold.tolist() == [4] * 5  # a temperature near zero is the likeliest word


@pytest.mark.parametrize(
    ("top_k", "top_p", "kept"),
    [
        (0, 1.0, [0, 1, 2, 3, 4]),
        (1, 1.0, [1]),
        (2, 1.0, [0, 1, 3]),  # 0 and 3 are equally likely
        (9, 1.0, [0, 1, 2, 3, 4]),
        (0, 0.39, [1]),
        (0, 0.41, [0, 1, 3]),
        (0, 0.9, [0, 1, 2, 3]),
        (0, 0.96, [0, 1, 2, 3, 4]),
        (3, 0.55, [0, 1, 3]),  # of what top_k left: .25, .5, .25
        (2, 0.45, [1]),
    ],
)
def test_the_likeliest_words(top_k: int, top_p: float, kept: list[int]) -> None:
    """p are .2, .4, .15, .2, .05; torch and numpy leave the same words, and do not change their values."""
    log_probs = torch.tensor([[0.2, 0.4, 0.15, 0.2, 0.05]], dtype=torch.float64).log() - 3
    values = truncate(log_probs, top_k, top_p)
    assert values.isfinite().nonzero()[:, 1].tolist() == kept
    assert torch.equal(values[:, kept], log_probs[:, kept])
    np.testing.assert_array_equal(exported.truncate(log_probs.numpy(), top_k, top_p), values.numpy())


def test_drawn_words_are_among_the_likeliest() -> None:
    """Every word of a draw is one of the two likeliest after the words before it; a tiny nucleus is the
    likeliest word each time."""
    model, source = make(), [3, 4]
    for candidate in sample(model, [source], SamplingConfig(samples=30, top_k=2))[0]:
        state, before = model.start([source]), None
        for word in candidate.words:
            log_probs, state = model.step(state, before)
            assert word in log_probs[0, [1, 3, 4, 5]].topk(2).indices.apply_([1, 3, 4, 5].__getitem__)
            before = torch.tensor([word])
    greedy, nucleus = (
        sample(model, [source], SamplingConfig(samples=5, **settings))[0]
        for settings in ({"top_k": 1}, {"top_p": 1e-9})
    )
    assert [c.words for c in greedy] == [c.words for c in nucleus] == [greedy[0].words] * 5


def test_neighbours_and_the_size_of_a_batch_change_nothing() -> None:
    model, sources = make(), [[3], [4, 5], [6, 3, 4]]
    together = sample(model, sources, SamplingConfig(samples=3, seed=7))
    assert [[c.words for c in row] for row in together] == [
        [c.words for c in row] for row in sample(model, sources, SamplingConfig(samples=3, seed=7, rows=3))
    ]
    for number, source in enumerate(sources):
        assert [
            c.words for c in sample(model, [source], SamplingConfig(samples=3, seed=7), first=number)[0]
        ] == [c.words for c in together[number]]
    other = sample(model, sources, SamplingConfig(samples=3, seed=8))
    assert [[c.words for c in row] for row in together] != [[c.words for c in row] for row in other]


def test_log_probs_are_the_scorers_at_any_temperature() -> None:
    model = make(1)
    for temperature in (0.5, 1.0, 2.0):
        drawn = sample(model, [[3, 4, 5]], SamplingConfig(samples=20, temperature=temperature))[0]
        scores = word_scores(model, [([3, 4, 5], candidate.words) for candidate in drawn])
        assert [candidate.log_prob for candidate in drawn] == pytest.approx(
            [sum(row) for row in scores], abs=1e-10
        )
        assert not any(UNK in candidate.words for candidate in drawn)


def test_distinct_draws_with_counts() -> None:
    model = make(1)
    drawn = sample(model, [[3]], SamplingConfig(samples=200))[0]
    found = count_distinct(drawn)
    assert sum(count for _, count in found) == 200 and len(found) == len(
        {tuple(candidate.words) for candidate in drawn}
    )
    assert np.all(np.diff([candidate.log_prob for candidate, _ in found]) <= 0)
