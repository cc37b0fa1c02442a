"""The attention of whole sentences is that of the steps, and the loss of a guided batch has its cost, with
the right gradient."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from nmt.data.batches import Batch, make_batch
from nmt.data.guidance import guidance, unit_links
from nmt.layers.attention import alignment_cost
from nmt.models.rnn import RNNTranslator
from nmt.models.transformer import Transformer
from nmt.text.vocab import EOS
from tests.nmt.models.models import make_transformer
from tests.nmt.models.test_rnn import make as make_rnn

PAIRS = [([3, 4, 5], [3]), ([6], [4, 5, 6, 7]), ([7, 8], [8, 9]), ([9, 3, 4, 5], [])]
LINKS = [{(0, 0), (2, 0)}, {(0, 1)}, {(0, 1), (1, 0)}, set[tuple[int, int]]()]
MODELS: list[tuple[str, dict[str, object]]] = [
    ("rnn", {"attention": 6}),
    ("rnn", {"attention": 6, "encoder": "birnn", "encoder_layers": 2, "decoder_layers": 2, "bias": True}),
    ("rnn", {"attention": 6, "reverse": True}),
    ("rnn", {"attention": 6, "cell": "lstm", "encoder": "birnn"}),
    ("rnn", {"attention": 6, "reset": "after"}),
    ("transformer", {}),
    ("transformer", {"norm": "pre", "attention_layer": 2}),
    ("transformer", {"attention_heads": 1}),
    ("transformer", {"recompute": True}),
]


def make(kind: str, options: dict[str, object]) -> RNNTranslator | Transformer:
    return make_rnn(**options) if kind == "rnn" else make_transformer(**options)


def guided(rows: list[int], weight: float = 0.7) -> Batch:
    """A batch of some of the pairs, with their links."""
    batch = make_batch([PAIRS[row][0] for row in rows], [PAIRS[row][1] for row in rows])
    links = [
        unit_links(frozenset(LINKS[row]), range(len(PAIRS[row][0])), range(len(PAIRS[row][1])))
        for row in rows
    ]
    return replace(batch, guidance=guidance(links, batch.target.sizes, batch.target.order.tolist(), weight))


@torch.no_grad()
@pytest.mark.parametrize(("kind", "options"), MODELS, ids=str)
def test_attention_of_whole_sentences_is_that_of_the_steps(kind: str, options: dict[str, object]) -> None:
    model = make(kind, options)
    assert model.attends
    batch = guided([0, 1, 2, 3])
    features, weights = model.attended(batch)
    assert torch.equal(features, model.unroll(batch))
    for (source, target), rows in zip(PAIRS, batch.target.split(weights), strict=True):
        state, words = model.start([source]), None
        for word, row in zip([*target, EOS], rows, strict=True):
            _, state = model.step(state, words)  # type: ignore[arg-type]
            looks = model.attention(state)  # type: ignore[arg-type]
            assert looks is not None and not row[len(source) + 1 :].any()
            assert torch.allclose(looks[0], row[: len(source) + 1], atol=1e-12)
            words = torch.tensor([word])


@pytest.mark.parametrize(("kind", "options"), MODELS, ids=str)
def test_the_loss_has_the_cost_of_the_links(kind: str, options: dict[str, object]) -> None:
    """Whatever else is in the batch, and in any order."""
    model = make(kind, options)
    batch = guided([0, 1, 2, 3])
    plain, whole = model.loss(replace(batch, guidance=None)), model.loss(batch)
    assert batch.guidance is not None
    extra = alignment_cost(model.attended(batch)[1], batch.guidance)
    assert float(extra.detach()) > 1 and torch.allclose(whole, plain + extra, atol=1e-12)
    assert torch.allclose(whole, sum((model.loss(guided([row])) for row in (2, 0, 3, 1)), torch.tensor(0.0)))
    assert torch.allclose(extra, 0.7 * (model.loss(guided([3, 1, 0, 2], 1.7)) - whole))


@pytest.mark.parametrize(("kind", "options"), MODELS, ids=str)
def test_gradients(kind: str, options: dict[str, object]) -> None:
    model, batch = make(kind, options), guided([0, 1, 2, 3])
    parameters = [p for name, p in model.named_parameters() if name != "decoder.embedding.weight"]

    def loss(*_: Tensor) -> Tensor:
        return model.loss(batch)

    assert torch.autograd.gradcheck(loss, parameters, fast_mode=True)


def test_one_head_leaves_the_others_free() -> None:
    """The first head of the layer learns the links; a second one gets no gradient from them."""
    model, batch = make_transformer(attention_heads=1, attention_layer=2), guided([0, 1, 2])
    assert isinstance(model, Transformer) and batch.guidance is not None
    alignment_cost(model.attended(batch)[1], batch.guidance).backward()
    source = model.decoder.blocks[1].source
    assert source is not None and source.query.weight.grad is not None
    first, second = source.query.weight.grad.chunk(2)
    assert first.abs().max() > 1e-3 and not second.any()
