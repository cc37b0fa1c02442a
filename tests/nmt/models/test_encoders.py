"""Encoders: a batch = one by one, prefixes read once = read each time, merges of a convolution."""

import pytest
import torch

from nmt.data.batches import pack_source
from nmt.layers.initialize import initialize
from nmt.models.config import RNNConfig
from nmt.models.encoders import ENCODER_CLASSES, Encoder, GrConvEncoder, RNNEncoder, word_vectors
from nmt.text.vocab import EOS
from tests.nmt.models.models import with_options

SOURCES = [[3, 4, 5], [6], [3, 4], [], [7, 8, 3, 4]]
VARIANTS: list[dict[str, object]] = [
    {},
    {"cell": "lstm", "summary": "tanh"},
    {"reverse": True},
    {"encoder_layers": 2},
    {"encoder": "birnn", "encoder_hidden": 3},
    {"encoder": "birnn", "encoder_layers": 2, "attention": 4},
    {"encoder": "grconv", "bias": True},
    {"encoder": "grconv", "reverse": True, "summary": "tanh"},
]


def make(**options: object) -> Encoder:
    torch.manual_seed(0)
    config = with_options(RNNConfig(embedding=4, hidden=5), options)
    encoder = ENCODER_CLASSES[config.encoder](config, 9)
    initialize(encoder, "uniform", 0.7)
    return encoder.double().eval()


@torch.no_grad()
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_a_batch_is_its_sentences(options: dict[str, object]) -> None:
    """Summaries in the order of the batch; annotations of a sentence's words, end symbol included."""
    encoder = make(**options)
    whole = encoder(pack_source(SOURCES))
    for number, source in enumerate(SOURCES):
        alone = encoder(pack_source([source]))
        assert torch.allclose(whole.summary[number], alone.summary[0], atol=1e-12)
        if whole.states is not None:
            words = whole.source.split(whole.states)[number]
            assert len(words) == len(source) + 1 and torch.allclose(words, alone.states, atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("attention", [0, 4])
def test_both_directions_end_at_the_ends_of_a_sentence(attention: int) -> None:
    """The forward state at the end symbol, and the backward one at the first word, which alone starts a
    decoder with attention."""
    encoder = make(encoder="birnn", attention=attention)
    found = encoder(pack_source(SOURCES))
    H = 5
    for number, states in enumerate(found.source.split(found.states)):
        backward = states[0, H:]
        expected = backward if attention else torch.cat([states[-1, :H], backward])
        assert torch.equal(found.summary[number], expected)


@torch.no_grad()
@pytest.mark.parametrize("options", [{}, {"cell": "lstm"}, {"summary": "tanh"}], ids=str)
def test_shared_prefixes_give_the_same(options: dict[str, object]) -> None:
    encoder = make(**options)
    assert isinstance(encoder, RNNEncoder) and encoder.shares_prefixes
    sources = [*SOURCES, [3, 4], [3]]
    expected = encoder(pack_source(sources)).summary
    assert torch.allclose(encoder.summarize_by_prefix(sources), expected, atol=1e-12)


@torch.no_grad()
def test_what_shares_no_prefixes() -> None:
    """Where more words change the state after the first ones, the encoder says so."""
    for options in VARIANTS:
        encoder = make(**options)
        same = []
        for rest in ([5], [6, 7]):
            states = encoder(pack_source([[3, 4, *rest]])).states
            same.append(None if states is None else states[:2])
        if same[0] is not None and same[1] is not None and encoder.shares_prefixes:
            assert torch.allclose(same[0], same[1], atol=1e-12)
        elif same[0] is not None and same[1] is not None and not options.get("encoder_layers"):
            assert not torch.allclose(same[0], same[1])


@torch.no_grad()
def test_reversed_is_the_encoder_of_the_reversed_source() -> None:
    """Its end symbol stays behind."""
    backward, forward = make(reverse=True), make()
    turned = [source[::-1] for source in SOURCES]
    found, expected = backward(pack_source(SOURCES)), forward(pack_source(turned))
    assert torch.allclose(found.summary, expected.summary, atol=1e-12)


@torch.no_grad()
def test_leaves_and_gates_of_a_convolution() -> None:
    """A leaf for each word, the end symbol for a sentence without words; T (T - 1) / 2 merges whose weights
    add up to 1."""
    encoder = make(encoder="grconv", bias=True)
    assert isinstance(encoder, GrConvEncoder)
    packed = pack_source(SOURCES)
    leaves, sizes = encoder.leaves(packed)
    assert sorted(leaves.tolist()) == sorted([word for source in SOURCES for word in source] + [EOS])
    assert sizes == [5, 3, 2, 1]
    gates = encoder.gates(SOURCES)
    for source, weights in zip(SOURCES, gates, strict=True):
        assert weights.shape == (len(source) * (len(source) - 1) // 2, 3)
        assert torch.allclose(weights.sum(1), torch.ones(len(weights)).double())
    assert torch.allclose(gates[0], encoder.gates([SOURCES[0]])[0], atol=1e-12)


def test_word_vectors_by_spelling_need_the_words() -> None:
    config = RNNConfig(embedding=4, source_words="characters")
    with pytest.raises(AssertionError, match="needs the source words"):
        word_vectors(config, 2, None)
    vectors = word_vectors(config, 2, ["a", "b"])
    assert vectors(torch.tensor([0, 1, 0])).shape == (3, 4)
