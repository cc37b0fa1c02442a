"""The recurrent model reads text in chunks as it reads it at once."""

import pytest
import torch
from torch import Tensor

from nmt.data.running import ChunkStream, as_corpus, join_sentences
from nmt.layers.batch_scores import word_scores
from nmt.layers.cells import NormalizedLSTM
from nmt.lm.recurrent import RecurrentLM
from nmt.text.vocab import EOS
from nmt.training.validation import running_cost
from tests.nmt.lm.models import TEXTS, model_of


@pytest.mark.parametrize("kind", ["lstm", "gru", "normalized"])
def test_text_in_chunks_is_the_text_at_once(kind: str) -> None:
    model = model_of(kind, carry=True)
    assert isinstance(model, RecurrentLM)
    text = join_sentences(as_corpus(TEXTS))
    costs = []
    for steps in (1, 5, 100):
        total, carried = 0.0, None
        for chunk in ChunkStream(text, 1, steps).batches(0):
            with torch.no_grad():
                cost, carried = model.cost(chunk, 0.0, carried)
            total += float(cost)
        costs.append(total)
    assert costs[0] == pytest.approx(costs[2], abs=1e-9) and costs[1] == pytest.approx(costs[2], abs=1e-9)
    assert running_cost(model, as_corpus(TEXTS), tracks=1) == pytest.approx(costs[2] / len(text), abs=1e-9)
    joined = [id for text in TEXTS for id in [*text, EOS]][:-1]
    assert costs[2] == pytest.approx(-sum(word_scores(model, [((), joined)])[0]), abs=1e-9), (
        "the state goes on through ends of sentences"
    )


def test_a_normalized_layer_is_what_its_equations_say() -> None:
    torch.manual_seed(3)
    layer = NormalizedLSTM(3, 4).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    x, h, c = torch.randn(2, 3).double(), torch.randn(2, 4).double(), torch.randn(2, 4).double()
    state = layer.step(x, torch.cat([h, c], 1))

    def norm(a: Tensor) -> Tensor:
        return (a - a.mean(1, keepdim=True)) / (a.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()

    a = (
        norm(x @ layer.inputs.t()) * layer.gain_inputs
        + norm(h @ layer.recurrent.t()) * layer.gain_recurrent
        + layer.bias
    )
    i, f, o, g = a.chunk(4, 1)
    cell = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    assert torch.allclose(state[:, 4:], cell, atol=1e-12)
    assert torch.allclose(
        state[:, :4],
        torch.sigmoid(o) * torch.tanh(norm(cell) * layer.gain_cell + layer.cell_bias),
        atol=1e-12,
    )
