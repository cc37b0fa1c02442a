"""What CUDA graphs need of batches and models: padded to a shape that others share, a batch has the same cost
and gradients. tests/nmt/test_gpu.py records and replays the graphs, where there is a GPU."""

import random

import pytest
import torch

from nmt.data.batches import Batch, make_batch
from nmt.training.cuda_graphs import LEAST_STEP, PARTS, batch_shape, rounded
from nmt.training.protocols import Trainable
from tests.nmt.lm.models import KINDS, TEXTS, model_of
from tests.nmt.models.models import (
    PAIRS,
    RNN_VARIANTS,
    SOURCE,
    TARGET,
    TRANSFORMER_VARIANTS,
    make_rnn,
    make_transformer,
)

MODELS: list[tuple[str, dict[str, object]]] = [("rnn", options) for options in RNN_VARIANTS]
MODELS += [("transformer", options) for options in TRANSFORMER_VARIANTS]
MODELS += [("transformer", {"recompute": True})]


def random_batch(seed: int) -> Batch:
    drawn = random.Random(seed)

    def sentences(words: int) -> list[list[int]]:
        return [[drawn.randrange(3, words) for _ in range(drawn.randrange(0, 7))] for _ in range(6)]

    return make_batch(sentences(SOURCE), sentences(TARGET))


@pytest.mark.parametrize(("kind", "options"), MODELS, ids=str)
def test_padding_changes_neither_cost_nor_gradient(kind: str, options: dict[str, object]) -> None:
    """In double precision. Models that cannot leave padding out say so."""
    model = make_rnn(**options) if kind == "rnn" else make_transformer(**options)
    special = options.get("encoder") == "grconv" or str(options.get("cell")).startswith("vc")
    special = special or "recompute" in options  # which looks at the state of the random numbers
    assert model.takes_padding is not special
    if special:
        return
    for batch in (make_batch(*zip(*PAIRS, strict=True)), random_batch(1)):
        changes_nothing(model, batch)


def changes_nothing(model: Trainable, batch: Batch) -> None:
    """Check that a batch and the padded batch have the same cost and gradients."""
    padded = batch.pad(*batch_shape(batch))
    assert padded.target_tokens > batch.target_tokens
    costs, gradients = [], []
    for part in (batch, padded):
        for parameter in model.parameters():
            parameter.grad = None
        cost, _ = model.cost(part, 0.1, None)
        cost.backward()
        costs.append(cost.item())
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert costs[0] == pytest.approx(costs[1], abs=1e-10)
    for ours, theirs in zip(*gradients, strict=True):
        assert ours is not None and theirs is not None
        assert torch.allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("kind", list(KINDS))
def test_padding_of_language_models(kind: str) -> None:
    more: dict[str, object] = {"dropout": 0.0, "attention_dropout": 0.0, "feed_forward_dropout": 0.0}
    if "heads" not in KINDS[kind]:
        more = {"normalizer": 0.1} if kind in ("cslm", "lstm") else {}
    model = model_of(kind, 0, **more)
    special = kind == "characters" or kind.startswith("vc")
    assert model.takes_padding is not special
    if special:
        return
    model.train()
    changes_nothing(model, make_batch([()] * len(TEXTS), TEXTS))


def test_a_padded_batch_has_the_same_sentences() -> None:
    batch = random_batch(2)
    padded = batch.pad(12, 10, 8)
    assert padded.source.sizes == [8] * 12 and padded.target.sizes == [8] * 10
    assert padded.counted is not None and int(padded.counted.sum()) == batch.target_tokens
    for side, wide in ((batch.source, padded.source), (batch.target, padded.target)):
        assert wide.lengths[: len(side.order)].tolist() == side.lengths.tolist()
        assert wide.lengths[len(side.order) :].tolist() == [1, 1]
        whole = [tokens[: len(own)] for own, tokens in zip(side.split(side.ids), grid(wide), strict=False)]
        assert [tokens.tolist() for tokens in whole] == [own.tolist() for own in side.split(side.ids)]
        turned = wide.ids[wide.reversed_order(fixed=1)].view(len(wide.sizes), -1)
        back = side.ids[side.reversed_order(fixed=1)]
        assert turned[side.steps, side.rows].tolist() == back.tolist()
    again = padded.of_tensors(padded.tensors)
    assert all(torch.equal(a, b) for a, b in zip(again.tensors, padded.tensors, strict=True))


def grid(packed: object) -> list[torch.Tensor]:
    """The tokens of each sentence of a padded batch, in the order of the batch, with the padding."""
    rows = packed.ids.view(len(packed.sizes), -1).t()  # type: ignore[attr-defined]
    result: list[torch.Tensor] = [rows[0]] * len(rows)
    for row, sentence in zip(rows, packed.order.tolist(), strict=True):  # type: ignore[attr-defined]
        result[sentence] = row
    return result


def test_shapes_are_a_little_larger_and_few() -> None:
    sizes = [rounded(count) for count in range(1, 2000)]
    assert sizes == sorted(sizes) and len(set(sizes)) < 70
    for count, size in zip(range(1, 2000), sizes, strict=True):
        assert count <= size < count + max(LEAST_STEP, -(-count // PARTS) + 1)
        assert rounded(size) == size
