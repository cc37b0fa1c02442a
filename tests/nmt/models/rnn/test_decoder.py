"""The decoder between two words: rows of states, tables of words, one step and all at once."""

import pytest
import torch

from nmt.data.batches import make_batch, pack_source
from nmt.models.config import RNNConfig
from nmt.models.rnn import decoder as decoders
from nmt.models.rnn.decoder import DecoderState, WordTables
from nmt.models.rnn.translator import Translator
from nmt.text.vocab import BOS, EOS
from tests.nmt.models.options import with_options

SOURCES, TARGETS = [[3, 4, 5], [6], [7, 8]], [[3], [4, 5, 6], [8, 9]]
VARIANTS: list[dict[str, object]] = [
    {},
    {"cell": "lstm", "decoder_layers": 2},
    {"first_word": "initial"},
    {"attention": 4, "encoder": "birnn"},
    {"attention": 4, "reset": "after", "decoder_layers": 2},
    {"tied": "target"},
]


def make(**options: object) -> Translator:
    torch.manual_seed(0)
    config = with_options(RNNConfig(embedding=4, hidden=5, maxout=4, init_scale=0.8), options)
    return Translator(config, 9, 10).double().eval()


def start(model: Translator, sources: list[list[int]]) -> DecoderState:
    return model.decoder.start(model.encoder(pack_source(sources)))


def same(one: DecoderState, other: DecoderState, model: Translator) -> bool:
    """Do two states go on alike, whatever is stored where?"""
    words = torch.full((len(one.hidden),), 4)
    ours, theirs = model.decoder.read(one, words), model.decoder.read(other, words)
    return torch.allclose(ours[0], theirs[0], atol=1e-12) and torch.allclose(
        ours[1].hidden, theirs[1].hidden, atol=1e-12
    )


@torch.no_grad()
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_rows_and_joins(options: dict[str, object]) -> None:
    """A row of a state is the state of its sentence; states of parts, joined, are the state of all;
    sentences without rows are dropped."""
    model = make(**options)
    whole = start(model, SOURCES)
    rows = torch.tensor([2, 0, 2])
    assert same(whole.rows(rows), start(model, [SOURCES[row] for row in rows.tolist()]), model)
    parts = [whole.rows(torch.tensor([1])), whole.rows(torch.tensor([2, 2]))]
    joined = DecoderState.join(parts)
    assert same(joined, start(model, [SOURCES[1], SOURCES[2], SOURCES[2]]), model)
    assert len(joined.sentence.unique()) == 2
    stored = joined.sources
    assert len(stored.cell if stored.memory is None else stored.memory.keys) == 2  # type: ignore[arg-type]


@torch.no_grad()
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_all_at_once_is_step_by_step(options: dict[str, object]) -> None:
    model = make(**options)
    batch = make_batch(SOURCES, TARGETS)
    features = model.decoder.unroll(model.encoder(batch.source), batch.target, batch.previous)
    for source, target, expected in zip(SOURCES, TARGETS, batch.target.split(features), strict=True):
        state, words = start(model, [source]), None
        for word, wanted in zip([*target, EOS], expected, strict=True):
            found, state = model.decoder.read(state, words)
            assert torch.allclose(found[0], wanted, atol=1e-12)
            words = torch.tensor([word])


@torch.no_grad()
def test_a_cached_table_follows_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words looked up = computed, before and after a weight changes; computed once a change, a large one
    each time."""
    decoder, ids, computed = make().decoder, torch.tensor([4, 9, 4, BOS]), list[int]()
    tables = decoder.tables

    def counted(token_ids: torch.Tensor) -> WordTables:
        computed.append(len(token_ids))
        return tables(token_ids)

    monkeypatch.setattr(decoder, "tables", counted)
    for _ in range(2):
        for _ in range(2):
            found, expected = decoder.tables_of(ids), tables(ids)
            assert torch.allclose(found.cell, expected.cell) and torch.allclose(found.output, expected.output)
        decoder.embedding.weight.mul_(2)
    decoder.tables_of(ids)
    assert computed == [10, 10, 10]
    decoder.train(False)  # an optimizer may have changed weights unseen
    decoder.tables_of(ids)
    assert computed == [10] * 4
    monkeypatch.setattr(decoders, "KEPT", 10)
    decoder.tables_of(ids)
    decoder.tables_of(ids)
    assert computed == [10] * 4 + [4, 4]


@torch.no_grad()
def test_no_previous_word() -> None:
    """The beginning is a zero vector, also where embeddings are tied to the output, whose row it is not."""
    for options in ({}, {"tied": "target"}):
        decoder = make(**options).decoder
        if options:  # the softmax has trained this row
            decoder.embedding.weight[BOS] = 1
        embedded = decoder.embed(torch.tensor([BOS, 4]))
        assert not embedded[0].any() and torch.equal(embedded[1], decoder.embedding.weight[4])


@torch.no_grad()
def test_attention_weights_of_each_row() -> None:
    model = make(attention=4, encoder="birnn")
    _, state = model.decoder.read(start(model, SOURCES), None)
    assert state.weights is not None
    for row, source in enumerate(SOURCES):
        weights = state.weights[row]
        assert (
            abs(float(weights[: len(source) + 1].sum()) - 1) < 1e-12 and not weights[len(source) + 1 :].any()
        )
    turned = state.rows(torch.tensor([1, 0]))
    assert turned.weights is not None and torch.equal(turned.weights, state.weights[[1, 0]])
