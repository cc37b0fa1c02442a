"""The joint model against its equations, and many words at a time against one by one."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from nmt.data.affiliation import AlignedPair, source_windows
from nmt.data.aligned import AlignedBatch, make_aligned_batch
from nmt.models.joint import JointModel
from nmt.text.vocab import BOS, EOS
from tests.nmt.gradients import check_gradients
from tests.nmt.models.models import ALIGNED, JOINT_TARGET, make_joint


def naive(model: JointModel, before: list[int], around: list[int]) -> NDArray[np.float64]:
    """Scores of all words: h1 = tanh(U [e(t-2); e(t-1)] + W [f(s-2); ...; f(s+2)] + b), h2 = tanh(V h1 + c),
    G h2 + d."""
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    target = np.concatenate([weights["target_embedding.weight"][word] for word in before])
    source = np.concatenate([weights["source_embedding.weight"][word] for word in around])
    hidden = np.tanh(
        weights["from_target.weight"] @ target
        + weights["from_source.weight"] @ source
        + weights["from_source.bias"]
    )
    hidden = np.tanh(weights["layers.0.weight"] @ hidden + weights["layers.0.bias"])
    return np.asarray(weights["output.words"] @ hidden + weights["output.words_bias"])


def by_hand(model: JointModel, pair: AlignedPair, normalized: bool = False) -> list[float]:
    """log p of each word of a pair, one by one."""
    found, source = [], [BOS, BOS, *pair.source, EOS, BOS, BOS]
    line = [BOS, BOS, *pair.target]
    for place, word in enumerate([*pair.target, EOS]):
        center = pair.affiliation[place] if place < len(pair.target) else len(pair.source)
        scores = naive(model, list(line[place : place + 2]), list(source[center : center + 5]))
        log_z = 0.0 if normalized else math.log(np.exp(scores).sum())
        found.append(float(scores[word] - log_z))
    return found


def test_log_probabilities_are_those_of_the_equations() -> None:
    model = make_joint()
    batch = make_aligned_batch(ALIGNED, model.shape)
    expected = [value for pair in ALIGNED for value in by_hand(model, pair)]
    assert model.token_log_probs(batch).tolist() == pytest.approx(expected, abs=1e-12)
    assert float(model.loss(batch).detach()) == pytest.approx(-sum(expected), abs=1e-10)
    every = AlignedBatch(
        batch.contexts[:1].expand(JOINT_TARGET, -1),
        batch.windows[:1].expand(JOINT_TARGET, -1),
        torch.arange(JOINT_TARGET),
        [],
    )
    assert model.token_log_probs(every).exp().sum().item() == pytest.approx(1)


def test_from_right_to_left_it_is_the_model_of_reversed_sentences() -> None:
    """Its scores are those of the equations on both sentences reversed, with the alignment reversed."""
    model = make_joint(direction="right-to-left")
    expected = []
    for pair in ALIGNED:
        last = len(pair.source) - 1
        places = [max(last - place, 0) for place in reversed(list(pair.affiliation))]
        expected += by_hand(model, AlignedPair(pair.source[::-1], pair.target[::-1], places))
    found = model.token_log_probs(make_aligned_batch(ALIGNED, model.shape))
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
    one_by_one = [model.token_log_probs(make_aligned_batch([pair], model.shape)) for pair in ALIGNED]
    assert torch.cat(one_by_one).tolist() == pytest.approx(expected, abs=1e-12)
    forward = make_joint().token_log_probs(make_aligned_batch(ALIGNED, make_joint().shape))
    assert not torch.allclose(found, forward)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("keep_tables", [False, True])
def test_many_words_at_a_time(normalized: bool, keep_tables: bool) -> None:
    """Equal words in equal windows are computed once, the source's part once a place."""
    model = make_joint()
    scores = model.window_scores(normalized, keep_tables)
    windows = [source_windows(pair.source, 5) for pair in ALIGNED]
    starts = np.cumsum([0, *map(len, windows)])
    places = np.concatenate(
        [
            start + np.array([*pair.affiliation, len(pair.source)], np.int64)
            for start, pair in zip(starts, ALIGNED, strict=False)
        ]
    )
    batch = make_aligned_batch(ALIGNED * 2, model.shape)
    found = scores.score(
        scores.source_part(np.concatenate(windows)),
        np.concatenate([places, places]),
        batch.contexts.numpy(),
        batch.words.numpy(),
    )
    expected = [value for pair in ALIGNED for value in by_hand(model, pair, normalized)]
    assert found.tolist() == pytest.approx(expected * 2, abs=1e-12)


@pytest.mark.parametrize(
    "options", [{"layers": [4]}, {"activation": "relu", "order": 2}, {"direction": "right-to-left"}, {}]
)
def test_gradients(options: dict[str, object]) -> None:
    """With the normalizer, which training alone has."""
    model = make_joint(0, **{"embedding": 2, "layers": [3, 3], "window": 3, **options}).train()
    assert model.normalizer == 0.1
    batch = make_aligned_batch(ALIGNED, model.shape)
    check_gradients(model, lambda: model.loss(batch))


def test_training_moves_log_z_towards_0() -> None:
    """With the normalizer scores become log p themselves; without it they do not."""
    ends = {}
    for normalizer in (0.0, 0.5):
        model = make_joint(normalizer=normalizer).train()
        batch = make_aligned_batch(ALIGNED, model.shape)
        began = np.abs(model.log_normalizers(batch)).mean()
        optimizer = torch.optim.Adam(model.parameters(), 0.02)
        for _ in range(100):
            optimizer.zero_grad()
            torch.autograd.backward(model.loss(batch))
            optimizer.step()
        ends[normalizer] = np.abs(model.log_normalizers(batch)).mean() / began
    assert ends[0.5] < 0.1 < ends[0.0]


def test_dropout_is_of_training_alone() -> None:
    model = make_joint(dropout=0.5)
    batch = make_aligned_batch(ALIGNED, model.shape)
    assert torch.equal(model.loss(batch), model.loss(batch))
    assert not torch.equal(model.train().loss(batch), model.loss(batch))
