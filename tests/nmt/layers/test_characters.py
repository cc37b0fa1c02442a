"""The character encoder against a loop over windows, one word at a time."""

import numpy as np
import pytest
import torch

from nmt.layers import characters
from nmt.layers.characters import BEGIN, END, FILTERS, LONGEST, PAD, WIDTHS, CharacterWords, spell
from nmt.layers.initialize import initialize

WORDS = ["<s>", "</s>", "<unk>", "a", "abc", "cab", "bébé", "x" * 40]


def make() -> CharacterWords:
    torch.manual_seed(0)
    layer = CharacterWords(WORDS, 7)
    initialize(layer, "glorot", 0)
    return layer.double()


def test_sizes_of_the_thesis() -> None:
    layer = make()
    assert [len(matrix) for matrix in layer.filters] == [25 * width for width in WIDTHS] and sum(
        len(matrix) for matrix in layer.filters
    ) == 525
    assert layer.transform_bias.tolist() == [-2.0] * 525


def test_spelling() -> None:
    layer = make()
    rows = spell(WORDS, layer.symbols)
    a, b, c = (layer.symbols[letter] for letter in "abc")
    assert rows[4].tolist()[:6] == [BEGIN, a, b, c, END, PAD]
    assert rows[0].tolist()[:4] == [BEGIN, layer.symbols["<s>"], END, PAD]  # a special is one symbol
    assert int((rows[7] != PAD).sum()) == LONGEST + 2


def test_vectors_equal_the_loop() -> None:
    layer = make()
    with torch.no_grad():
        found = layer(torch.arange(len(WORDS)))
        Q = layer.characters.numpy()
        for row, spelling in enumerate(layer.spelling.tolist()):
            letters = [Q[symbol] for symbol in spelling if symbol != PAD]
            maxima = []
            for width, H, b in zip(WIDTHS, layer.filters, layer.filter_biases, strict=True):
                padded = letters + [Q[PAD]] * max(0, width - len(letters))
                windows = [
                    np.stack(padded[start : start + width], 1).ravel()
                    for start in range(len(padded) - width + 1)
                ]
                maxima.append(np.max([np.tanh(H.numpy() @ window + b.numpy()) for window in windows], axis=0))
            y = np.concatenate(maxima)
            t = 1 / (1 + np.exp(-(layer.transform.numpy() @ y + layer.transform_bias.numpy())))
            z = t * np.maximum(0, layer.highway.numpy() @ y + layer.highway_bias.numpy()) + (1 - t) * y
            assert np.allclose(found[row], layer.projection.numpy() @ z, atol=1e-12)


@torch.no_grad()
def test_a_closed_transform_gate_carries_y_through() -> None:
    layer = make()
    layer.transform_bias.fill_(-1e9)
    y = layer(torch.tensor([4]))
    layer.highway.normal_()
    layer.table = None
    assert torch.equal(layer(torch.tensor([4])), y)


@torch.no_grad()
def test_the_table_equals_vectors_made_anew_and_follows_training() -> None:
    layer = make().eval()
    ids = torch.tensor([4, 4, 7, 0])
    online = layer.vectors(layer.spelling[ids])
    assert torch.allclose(layer(ids), online, atol=1e-14) and layer.table is not None
    layer.train()
    assert torch.allclose(layer(ids), online, atol=1e-14)  # the distinct words of the batch
    layer.projection.mul_(2)
    layer.eval()
    assert torch.allclose(layer(ids), 2 * online, atol=1e-14)


def test_other_words_of_the_vocabulary_change_nothing() -> None:
    layer = make()
    short = CharacterWords(WORDS[:-1], 7).double()
    assert short.symbols.keys() < layer.symbols.keys()
    with torch.no_grad():
        rows = torch.tensor([layer.symbols[symbol] for symbol in short.symbols])
        theirs = dict(layer.named_parameters())
        for name, parameter in short.named_parameters():
            parameter.copy_(
                theirs[name][torch.tensor([0, 1, 2, 3, *rows])] if name == "characters" else theirs[name]
            )
        assert torch.allclose(short(torch.arange(7)), layer(torch.arange(7)), atol=1e-14)


def test_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(characters, "WIDTHS", (1, 3))
    monkeypatch.setattr(characters, "FILTERS", 2)
    assert FILTERS == 25
    layer = make()
    ids = torch.tensor([3, 4, 4, 6])
    assert torch.autograd.gradcheck(lambda *_: layer(ids), list(layer.parameters()))
