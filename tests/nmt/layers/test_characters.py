"""The character encoder against a loop over windows, one word at a time."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from nmt.layers.characters import (
    BEGIN,
    END,
    LONGEST,
    PAD,
    SMALL_MODEL,
    TRANSFORM_BIAS,
    CharacterWords,
    Highway,
    OpenWords,
    SpelledWords,
    SpellingSizes,
    spell,
)
from nmt.layers.initialize import initialize

# ---- characters --------------------------------------------------------------------------------------------


WORDS = ["<s>", "</s>", "<unk>", "a", "abc", "cab", "bébé", "x" * 40]


SMALL = SpellingSizes(character=4, widths=(1, 3), filters=2)


def make(sizes: SpellingSizes = SMALL_MODEL) -> CharacterWords:
    torch.manual_seed(0)
    layer = CharacterWords(WORDS, 7, sizes)
    initialize(layer, "glorot", 0)
    return layer.double()


def make_open(layers: int = 2, size: int = 0) -> OpenWords:
    torch.manual_seed(0)
    layer = OpenWords(WORDS, SMALL, layers, size)
    initialize(layer, "glorot", 0)
    return layer.double().eval()


def test_sizes_of_the_thesis() -> None:
    layer = make()
    assert [len(matrix) for matrix in layer.filters] == [
        25,
        50,
        75,
        100,
        125,
        150,
    ] and SMALL_MODEL.total == 525
    large = SpellingSizes(widths=range(1, 8), filters=50, most=200)
    assert [large.filter_count(width) for width in range(1, 8)] == [50, 100, 150, 200, 200, 200, 200]
    assert large.total == 1100
    assert layer.transform_bias.tolist() == [-2.0] * 525


def test_spelling() -> None:
    layer = make()
    rows = spell(WORDS, layer.symbols)
    a, b, c = (layer.symbols[letter] for letter in "abc")
    assert rows[4].tolist()[:6] == [BEGIN, a, b, c, END, PAD]
    assert rows[0].tolist()[:4] == [BEGIN, layer.symbols["<s>"], END, PAD]  # a special is one symbol
    assert int((rows[7] != PAD).sum()) == LONGEST + 2


def naive_maxima(layer: SpelledWords, spelling: list[int]) -> NDArray[np.float64]:
    """max tanh(<window, H> + b) of each filter, window by window."""
    Q = layer.characters.detach().numpy()
    letters = [Q[symbol] for symbol in spelling if symbol != PAD]
    maxima = []
    for width, H, b in zip(layer.widths, layer.filters, layer.filter_biases, strict=True):
        padded = letters + [Q[PAD]] * max(0, width - len(letters))
        windows = [np.stack(padded[at : at + width], 1).ravel() for at in range(len(padded) - width + 1)]
        values = [np.tanh(H.detach().numpy() @ window + b.detach().numpy()) for window in windows]
        maxima.append(np.max(values, axis=0))
    return np.concatenate(maxima)


def test_vectors_equal_the_loop() -> None:
    layer = make()
    with torch.no_grad():
        found = layer(torch.arange(len(WORDS)))
        for row, spelling in enumerate(layer.spelling.tolist()):
            y = naive_maxima(layer, spelling)
            t = 1 / (1 + np.exp(-(layer.transform.numpy() @ y + layer.transform_bias.numpy())))
            z = t * np.maximum(0, layer.highway.numpy() @ y + layer.highway_bias.numpy()) + (1 - t) * y
            assert np.allclose(found[row], layer.projection.numpy() @ z, atol=1e-12)


@torch.no_grad()
def test_open_words_have_any_number_of_highway_layers() -> None:
    for layers, size in ((0, 0), (2, 0), (1, 3)):
        layer = make_open(layers, size)
        expected = torch.tensor(np.array([naive_maxima(layer, row) for row in layer.spelling.tolist()]))
        for highway in layer.highways:
            expected = highway(expected)
        expected = expected if layer.projection is None else expected @ layer.projection.t()
        found = layer(torch.arange(len(WORDS)))
        assert torch.allclose(found, expected, atol=1e-12) and found.shape[1] == (size or 8)


@torch.no_grad()
def test_unknown_words_have_vectors_from_their_spelling() -> None:
    layer, other = make_open(), make_open()
    before = layer(torch.arange(len(WORDS)))
    ids = layer.numbers(["caba", "ba", "caba"])
    assert ids == [len(WORDS), len(WORDS) + 1, len(WORDS)] and layer.numbers(["ba"]) == [ids[1]]
    online = other.vectors(spell(["caba", "ba"], other.symbols))
    assert torch.equal(layer(torch.tensor(ids[:2])), online)  # the table grows by them
    assert torch.equal(layer(torch.arange(len(WORDS))), before)
    layer.train()
    assert torch.allclose(layer(torch.tensor(ids[:2])), online, atol=1e-14)
    same = layer.numbers(["abc"])
    assert torch.allclose(layer(torch.tensor(same)), before[4:5], atol=1e-14)  # a known word's spelling


def test_unknown_words_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.layers.characters.OTHERS", 1)
    layer, V = make_open(), len(WORDS)
    assert layer.numbers(["ba", "bb"]) == [V, V + 1]
    with torch.no_grad():
        layer(torch.tensor([V + 1]))
        assert layer.numbers(["bb"]) == [V] and len(layer.spelling) == V + 1
        assert torch.equal(layer(torch.tensor([V])), make_open().vectors(spell(["bb"], layer.symbols)))


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


@pytest.mark.ci
def test_gradients() -> None:
    layer, ids = make(SMALL), torch.tensor([3, 4, 4, 6])
    assert torch.autograd.gradcheck(lambda *_: layer(ids), list(layer.parameters()))
    open_words = make_open().train()
    assert torch.autograd.gradcheck(lambda *_: open_words(ids), list(open_words.parameters()))


# ---- highway -----------------------------------------------------------------------------------------------
# Highway layers: the equation, and what closed and open gates do.


def make_highway() -> Highway:
    torch.manual_seed(0)
    layer = Highway(3)
    initialize(layer, "glorot", 0)
    return layer.double()


@torch.no_grad()
def test_gates() -> None:
    layer, y = make_highway(), torch.randn(4, 3).double()
    assert layer.transform_bias.tolist() == [TRANSFORM_BIAS] * 3
    t = torch.sigmoid(y @ layer.transform.t() + TRANSFORM_BIAS)
    g = (y @ layer.matrix.t() + layer.bias).clamp(min=0)
    assert torch.allclose(layer(y), t * g + (1 - t) * y, atol=1e-14)
    layer.transform_bias.fill_(-1e9)
    assert torch.equal(layer(y), y)
    layer.transform_bias.fill_(1e9)
    assert torch.allclose(layer(y), g, atol=1e-14)
