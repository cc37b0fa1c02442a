"""Layers computed again in the backward pass: the same loss and gradients, in less memory."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from nmt.compute.precision import Mixed
from nmt.data.batches import make_batch
from nmt.data.running import ChunkStream, as_corpus, join_sentences
from nmt.lm.recurrent import RecurrentLM
from nmt.models.transformer import Transformer
from tests.nmt.lm.models import TEXTS, model_of
from tests.nmt.models.models import make_transformer

KINDS = ("lstm", "gru", "elman", "normalized", "characters")


def recurrent(kind: str, recompute: int, **options: object) -> RecurrentLM:
    found = model_of(kind, 0, recompute=recompute, **options).train()
    assert isinstance(found, RecurrentLM)
    return found


def twins(kind: str, **options: object) -> tuple[RecurrentLM, RecurrentLM]:
    """The same model, with everything kept and with two steps at a time computed again; in training."""
    return recurrent(kind, 0, **options), recurrent(kind, 2, **options)


def gradients(model: RecurrentLM, loss: Tensor) -> dict[str, Tensor]:
    torch.autograd.backward(loss)
    return {name: value.grad for name, value in model.named_parameters() if value.grad is not None}


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.ci
def test_loss_and_gradients_are_the_same(kind: str, dropout: float) -> None:
    """Of sentences of several lengths; with dropout, too, since the same random numbers are drawn."""
    found = []
    for model in twins(kind, dropout=dropout):
        torch.manual_seed(7)
        loss = model.loss(make_batch([()] * len(TEXTS), TEXTS))
        found.append((float(loss.detach()), gradients(model, loss), torch.rand(1)))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-12) and torch.equal(found[0][2], found[1][2])
    assert found[0][1].keys() == found[1][1].keys() and len(found[0][1]) > 3
    for name, expected in found[0][1].items():
        assert torch.allclose(found[1][1][name], expected, atol=1e-12), name


@pytest.mark.parametrize("kind", KINDS)
def test_running_text_goes_on_from_the_same_state(kind: str) -> None:
    text = join_sentences(as_corpus(TEXTS))
    states = []
    for model in twins(kind, carry=True):
        carried, grads = None, []
        for chunk in ChunkStream(text, 2, 5).batches(0):
            loss, carried = model.cost(chunk, 0.0, carried)
            model.zero_grad()
            grads.append(torch.cat([grad.flatten() for grad in gradients(model, loss).values()]))
        assert isinstance(carried, Tensor) and not carried.requires_grad
        states.append((carried, torch.cat(grads)))
    assert all(torch.allclose(one, other, atol=1e-12) for one, other in zip(*states, strict=True))


def bytes_kept(model: RecurrentLM, length: int) -> int:
    """Memory of what the backward pass of the layers needs."""
    ids, sizes = torch.ones(4 * length, dtype=torch.int64), [4] * length
    return bytes_of(model, lambda: model.unroll(ids, sizes, model.zeros(4)))


def bytes_of(model: nn.Module, compute: Callable[[], object]) -> int:
    """Memory of what the backward pass of a computation needs, parameters aside, each storage once."""
    parameters = {value.untyped_storage().data_ptr() for value in model.parameters()}
    kept: dict[int, Tensor] = {}

    def pack(value: Tensor) -> Tensor:
        storage = value.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = value
        return value

    with saved_tensors_hooks(pack, lambda value: value):
        compute()
    return sum(value.untyped_storage().nbytes() for value in kept.values())


def test_memory() -> None:
    """Two layers of LSTM keep 7 H numbers a word each, and their inputs; recomputed, the inputs alone, and
    the states of 14 segments."""
    kept, again = (
        bytes_kept(recurrent("lstm", steps, embedding=32, hidden=32, depth=2), 196) for steps in (0, 14)
    )
    assert again < kept / 5


def transformer(recompute: bool, dropout: float) -> Transformer:
    torch.manual_seed(0)
    shares = {"dropout": dropout, "attention_dropout": dropout, "feed_forward_dropout": dropout}
    return make_transformer(recompute=recompute, **shares).train()


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_a_transformer_has_the_same_loss_and_gradients(dropout: float) -> None:
    batch = make_batch([[3, 4, 5, 4], [5], [4, 3]], [[3, 5], [4, 4, 3, 5], []])
    found = []
    for recompute in (False, True):
        model = transformer(recompute, dropout)
        torch.manual_seed(7)
        loss = model.loss(batch)
        torch.autograd.backward(loss)
        found.append(
            [loss.detach(), *(one.grad for one in model.parameters() if one.grad is not None), torch.rand(1)]
        )
    assert len(found[0]) > 20
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_a_transformer_keeps_the_inputs_of_its_layers() -> None:
    """Of 8 layers each, so that what is outside of them counts little."""
    ids = list(range(3, 9)) * 10
    kept = []
    for recompute in (False, True):
        model = make_transformer(recompute=recompute, encoder_layers=8, decoder_layers=8).train()
        kept.append(bytes_of(model, partial(model.loss, make_batch([ids] * 4, [ids] * 4))))
    assert kept[1] < kept[0] / 3


@pytest.mark.ci
def test_bf16_computes_the_same_twice() -> None:
    """The second computation is in the mode of the first, although dropout's masks are asked for before a
    layer enters it."""
    found = []
    for steps in (0, 3):
        torch.manual_seed(0)
        model = recurrent("lstm", steps, embedding=256, hidden=256, dropout=0.5).float()
        batch = make_batch([()] * 8, [[3, 4, 5, 6, 7, 3] * 2] * 8)
        with Mixed():
            loss = model.loss(batch)
            torch.autograd.backward(loss)
        found.append([value.grad for value in model.parameters() if value.grad is not None])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=2e-2 * float(one.abs().max()))
