"""The RNN's decoder between two words: rows of states, tables of words; and its deep output; the
encoders; widths that follow from the configuration."""

import copy

import pytest
import torch
from torch import nn

from nmt.data.batches import make_batch, pack_source
from nmt.errors import ConfigError
from nmt.layers.cells import GRU, LSTM
from nmt.layers.initialize import initialize
from nmt.layers.output import OUTPUTS, Softmax
from nmt.models.config import ModelConfig, RNNConfig
from nmt.models.encoders import ENCODER_CLASSES, Encoder, GrConvEncoder, RNNEncoder, word_vectors
from nmt.models.joint import JointConfig
from nmt.models.rnn import DecoderState, DeepOutput, ProjectedWords, RNNTranslator
from nmt.models.transformer import TransformerConfig
from nmt.text.vocab import BOS, EOS
from tests.nmt.models.models import PAIRS, make_rnn, with_options

SOURCES = [[3, 4, 5], [6], [7, 8]]
DECODERS: list[dict[str, object]] = [
    {},
    {"cell": "lstm", "decoder_layers": 2},
    {"first_word": "initial"},
    {"attention": 4, "encoder": "birnn"},
    {"attention": 4, "reset": "after", "decoder_layers": 2},
    {"tied": "target"},
]


def make_decoder(**options: object) -> RNNTranslator:
    torch.manual_seed(0)
    config = with_options(RNNConfig(embedding=4, hidden=5, maxout=4, init_scale=0.8), options)
    return RNNTranslator(config, 9, 10).double().eval()


def start_decoder(model: RNNTranslator, sources: list[list[int]]) -> DecoderState:
    return model.decoder.start(model.encoder(pack_source(sources)))


def same(one: DecoderState, other: DecoderState, model: RNNTranslator) -> bool:
    """Do two states go on alike, whatever is stored where?"""
    words = torch.full((len(one.hidden),), 4)
    ours, theirs = model.decoder.read(one, words), model.decoder.read(other, words)
    return torch.allclose(ours[0], theirs[0], atol=1e-12) and torch.allclose(
        ours[1].hidden, theirs[1].hidden, atol=1e-12
    )


@torch.no_grad()
@pytest.mark.parametrize("options", DECODERS, ids=str)
def test_rows_and_joins(options: dict[str, object]) -> None:
    """A row of a state is the state of its sentence; states of parts, joined, are the state of all;
    sentences without rows are dropped."""
    model = make_decoder(**options)
    whole = start_decoder(model, SOURCES)
    rows = torch.tensor([2, 0, 2])
    assert same(whole.rows(rows), start_decoder(model, [SOURCES[row] for row in rows.tolist()]), model)
    parts = [whole.rows(torch.tensor([1])), whole.rows(torch.tensor([2, 2]))]
    joined = DecoderState.join(parts)
    assert same(joined, start_decoder(model, [SOURCES[1], SOURCES[2], SOURCES[2]]), model)
    assert len(joined.sentence.unique()) == 2
    stored = joined.sources
    assert len(stored.cell if stored.memory is None else stored.memory.keys) == 2  # type: ignore[arg-type]


@torch.no_grad()
def test_a_cached_table_follows_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words looked up = computed, before and after a weight changes; computed once a change, a large one
    each time."""
    decoder, ids, computed = make_decoder().decoder, torch.tensor([4, 9, 4, BOS]), list[int]()
    project = decoder.project

    def counted(token_ids: torch.Tensor) -> ProjectedWords:
        computed.append(len(token_ids))
        return project(token_ids)

    monkeypatch.setattr(decoder, "project", counted)
    for _ in range(2):
        for _ in range(2):
            found, expected = decoder.project_cached(ids), project(ids)
            assert torch.allclose(found.cell, expected.cell) and torch.allclose(found.output, expected.output)
        decoder.embedding.weight.mul_(2)
    decoder.project_cached(ids)
    assert computed == [10, 10, 10]
    decoder.train(False)  # an optimizer may have changed weights unseen
    decoder.project_cached(ids)
    assert computed == [10] * 4
    monkeypatch.setattr("nmt.models.rnn.MOST_CACHED", 10)
    decoder.project_cached(ids)
    decoder.project_cached(ids)
    assert computed == [10] * 4 + [4, 4]


def test_no_previous_word_is_a_zero_vector_that_stays() -> None:
    model = make_rnn()
    model.loss(make_batch(*zip(*PAIRS, strict=True))).backward()
    weight = model.decoder.embedding.weight
    assert weight.grad is not None
    assert not weight[BOS].any() and not weight.grad[BOS].any() and weight.grad[4].any()


@torch.no_grad()
def test_no_previous_word() -> None:
    """The beginning is a zero vector, also where embeddings are tied to the output, whose row it is not."""
    for options in ({}, {"tied": "target"}):
        decoder = make_decoder(**options).decoder
        if options:  # the softmax has trained this row
            decoder.embedding.weight[BOS] = 1
        embedded = decoder.embed(torch.tensor([BOS, 4]))
        assert not embedded[0].any() and torch.equal(embedded[1], decoder.embedding.weight[4])


@torch.no_grad()
def test_attention_weights_of_each_row() -> None:
    model = make_decoder(attention=4, encoder="birnn")
    _, state = model.decoder.read(start_decoder(model, SOURCES), None)
    assert state.weights is not None
    for row, source in enumerate(SOURCES):
        weights = state.weights[row]
        assert (
            abs(float(weights[: len(source) + 1].sum()) - 1) < 1e-12 and not weights[len(source) + 1 :].any()
        )
    turned = state.rows(torch.tensor([1, 0]))
    assert turned.weights is not None and torch.equal(turned.weights, state.weights[[1, 0]])


# ---- deep output -------------------------------------------------------------------------------------------
# The readout below the output layer, and whose parameters are whose.


H, E, C, M, V = 4, 3, 5, 6, 11


def make_deep_output(rank: int = 0, bias: bool = False, output: str = "softmax") -> DeepOutput:
    torch.manual_seed(0)
    config = RNNConfig(
        hidden=H, embedding=E, encoder_hidden=C, maxout=M, output_rank=rank, bias=bias, output=output
    )
    layer = DeepOutput(config, V)
    initialize(layer, "glorot", 0)
    for parameter in (layer.bias, layer.words_bias):
        if parameter is not None:
            nn.init.normal_(parameter)
    return layer.double().eval()


def test_maxout_takes_the_larger_of_neighbors() -> None:
    layer = make_deep_output()
    h, y, c = (torch.randn(1, size, dtype=torch.float64) for size in (H, E, C))
    sums = (layer.hidden @ h[0] + layer.previous @ y[0] + layer.context @ c[0]).tolist()
    expected = [max(sums[2 * i], sums[2 * i + 1]) for i in range(M)]
    assert layer.combine(h, layer.project_previous(y), layer.project_context(c))[0].tolist() == pytest.approx(
        expected
    )


def test_probabilities_sum_to_one() -> None:
    probabilities = make_deep_output(bias=True).layer.log_probs(torch.randn(5, M, dtype=torch.float64)).exp()
    assert torch.allclose(probabilities.sum(1), torch.ones(5, dtype=torch.float64))


def test_low_rank_has_the_rank_and_the_parameters_it_says() -> None:
    full, low = make_deep_output(), make_deep_output(rank=2)
    assert low.right is not None
    counts = [sum(parameter.numel() for parameter in layer.parameters()) for layer in (full, low)]
    assert counts[0] - counts[1] == V * M - 2 * (V + M)
    assert int(torch.linalg.matrix_rank(low.words @ low.right)) == 2


def test_parameters_have_the_names_and_the_order_of_every_version() -> None:
    """Weights are loaded by name, states of optimizers by place."""
    names = ["hidden", "previous", "context", "right", "words", "bias", "words_bias"]
    assert list(make_deep_output(rank=2, bias=True).state_dict()) == names
    assert [name for name, _ in make_deep_output(rank=2, bias=True).named_parameters()] == names


def test_the_output_layer_follows_its_parameters_wherever_they_go() -> None:
    """Loaded, converted, trained, copied and tied parameters are those that the layer computes with."""
    model, features = make_deep_output(bias=True), torch.randn(3, M, dtype=torch.float64)
    for change in (
        lambda: model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()}),
        lambda: model.float().double(),
        lambda: torch.optim.SGD(model.parameters(), 0.1).step(),
        lambda: model.tie(nn.Embedding(V, M, dtype=torch.float64)),
    ):
        model.layer.cross_entropy(features, torch.tensor([0, 1, 2])).backward()
        change()
        model.zero_grad()
        for one in (model, copy.deepcopy(model)):
            scores = torch.nn.functional.linear(features, one.words, one.words_bias)
            assert torch.equal(one.layer.scores(features), scores)
    assert len(list(model.parameters())) == len(set(model.state_dict()))


class Shifted(Softmax):
    """An output layer with a parameter of its own."""

    def __init__(self, inputs: int, vocab_size: int, bias: bool = True) -> None:
        super().__init__(inputs, vocab_size, bias)
        self.shift = nn.Parameter(torch.ones(inputs))


def test_another_output_layer_keeps_what_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OUTPUTS, "shifted", Shifted)
    model = make_deep_output(output="shifted")
    assert isinstance(model.layer, Shifted)
    assert list(model.state_dict()) == ["hidden", "previous", "context", "words", "layer.shift"]


# ---- encoders ----------------------------------------------------------------------------------------------

ENCODED = [[3, 4, 5], [6], [3, 4], [], [7, 8, 3, 4]]
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
    whole = encoder(pack_source(ENCODED))
    for number, source in enumerate(ENCODED):
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
    found = encoder(pack_source(ENCODED))
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
    sources = [*ENCODED, [3, 4], [3]]
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
    turned = [source[::-1] for source in ENCODED]
    found, expected = backward(pack_source(ENCODED)), forward(pack_source(turned))
    assert torch.allclose(found.summary, expected.summary, atol=1e-12)


@torch.no_grad()
def test_leaves_and_gates_of_a_convolution() -> None:
    """A leaf for each word, the end symbol for a sentence without words; T (T - 1) / 2 merges whose weights
    add up to 1."""
    encoder = make(encoder="grconv", bias=True)
    assert isinstance(encoder, GrConvEncoder)
    packed = pack_source(ENCODED)
    leaves, sizes = encoder.leaves(packed)
    assert sorted(leaves.tolist()) == sorted([word for source in ENCODED for word in source] + [EOS])
    assert sizes == [5, 3, 2, 1]
    gates = encoder.gates(ENCODED)
    for source, weights in zip(ENCODED, gates, strict=True):
        assert weights.shape == (len(source) * (len(source) - 1) // 2, 3)
        assert torch.allclose(weights.sum(1), torch.ones(len(weights)).double())
    assert torch.allclose(gates[0], encoder.gates([ENCODED[0]])[0], atol=1e-12)


def test_word_vectors_by_spelling_need_the_words() -> None:
    config = RNNConfig(embedding=4, source_words="characters")
    with pytest.raises(AssertionError, match="needs the source words"):
        word_vectors(config, 2, None)
    vectors = word_vectors(config, 2, ["a", "b"])
    assert vectors(torch.tensor([0, 1, 0])).shape == (3, 4)


# ---- configuration -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "context", "summary"),
    [
        (RNNConfig(hidden=6), 6, 6),
        (RNNConfig(hidden=6, encoder_hidden=4), 4, 4),
        (RNNConfig(hidden=6, encoder="birnn"), 12, 12),
        (RNNConfig(hidden=6, encoder="birnn", attention=3), 12, 6),  # starts from the backward state
    ],
)
def test_widths(config: RNNConfig, context: int, summary: int) -> None:
    assert (config.context, config.summary_size) == (context, summary)


def test_cells() -> None:
    assert isinstance(RNNConfig(cell="lstm").make_cell(3, 4), LSTM)
    cell = RNNConfig(gate="take_new", reset="after", bias=True).make_cell(3, 4)
    assert isinstance(cell, GRU) and (cell.gate, cell.reset) == ("take_new", "after")
    assert cell.bias is not None


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (RNNConfig(cell="lstm", gate="take_new"), "belong to cell gru"),
        (RNNConfig(encoder="grconv", attention=3), "one vector a sentence"),
        (RNNConfig(attention=3, summary="tanh"), "does not have"),
        (RNNConfig(decoder_layers=2, first_word="initial"), "excludes attention and more"),
        (RNNConfig(tied="target", embedding=5, maxout=4), "set output_rank .* to 5, found 4"),
        (RNNConfig(tied="all", embedding=4, maxout=4, source_words="characters"), "source_words: table"),
        (RNNConfig(output="sofmax"), "model.output: 'sofmax' is unknown, expected one of 'softmax'"),
        (RNNConfig(dropout=1.0), "model.dropout: 1 is out of range"),
        (TransformerConfig(heads=3), r"model\.heads: 3 heads do not divide model\.embedding, 512"),
        (TransformerConfig(norm="both"), r"model\.norm: 'both' is unknown, expected one of 'post', 'pre'"),
        (TransformerConfig(positions="rotary"), r"expected one of 'sinusoidal', 'learned', 'none'"),
        (TransformerConfig(attention_layer=7), r"attention_layer: 7 is above model\.decoder_layers, 6"),
        (TransformerConfig(output="sofmax"), r"model\.output: 'sofmax' is unknown"),
        (TransformerConfig(attention_dropout=1.0), "range"),
        (JointConfig(window=4), r"^model\.window: 4 is even"),
        (JointConfig(layers=[]), r"^model\.layers: expected"),
        (JointConfig(layers=[0]), r"^model\.layers"),
        (JointConfig(output="none"), r"^model\.output: 'none' is unknown"),
        (JointConfig(affiliation="word"), r"^model\.affiliation"),
        (JointConfig(direction="backwards"), r"^model\.direction"),
        (RNNConfig(cell="gur"), "expected one of 'gru', 'lstm'"),
        (RNNConfig(hidden=0), "out of range, expected 1 to 1000000"),
        (RNNConfig(cell="vcgru", gate="take_new"), "belong to cell gru"),
    ],
)
def test_what_makes_no_model_is_refused(config: ModelConfig, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.check()
    RNNConfig().check()


def test_the_type_is_the_first_key() -> None:
    assert next(iter(vars(RNNConfig()))) == "type" and RNNConfig().type == ModelConfig().type == "rnn"
