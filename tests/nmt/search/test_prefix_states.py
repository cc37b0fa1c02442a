"""log p of texts through shared prefixes = that of each text alone; no prefix is read twice, and none before
something follows it."""

import random
from collections.abc import Sequence
from typing import Any, Generic

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.layers.batch_scores import word_scores
from nmt.models.protocols import Layered, State, StepModel
from nmt.models.registry import AnyModel
from nmt.models.rnn import DecoderState
from nmt.search import prefix_states
from nmt.search.prefix_states import Ints, PrefixStates, TrieReader
from nmt.text.vocab import EOS
from tests.nmt.search.models import ATTENTIVE, make, make_transformer

SOURCE = [3, 4, 3, 5]
TRANSFORMER: dict[str, object] = {"type": "transformer"}
UNITS = [1, 3, 4, 6, 7, 9]  # ids that may follow; the end symbol is at place 0


def grid(texts: Sequence[Sequence[int]]) -> Ints:
    made = np.full((len(texts), max(map(len, texts))), -1, np.int64)
    for row, text in enumerate(texts):
        made[row, : len(text)] = text
    return made


def alone(model: AnyModel, text: Sequence[int], restricted: bool = False) -> list[float]:
    """log p of each unit of a text and of its end, step by step."""
    found = []
    state, before = model.start([SOURCE]), None
    for place in [*text, UNITS.index(EOS)]:
        log_probs, state = model.step(state, before)
        normalizer = log_probs[0, UNITS].logsumexp(0) if restricted else torch.tensor(0.0)
        found.append(float(log_probs[0, UNITS[place]] - normalizer))
        before = torch.tensor([UNITS[place]])
    return found


class Steps(Generic[State]):
    """A model without tries, which can step, and compute features."""

    def __init__(self, model: StepModel[State]) -> None:
        assert isinstance(model, Layered)
        self.device, self.output_layer = model.device, model.output_layer
        self.start, self.step, self.reorder, self.join = model.start, model.step, model.reorder, model.join
        self.attention, self.features = model.attention, model.features


@pytest.mark.parametrize(
    "options", [{}, ATTENTIVE, {**ATTENTIVE, "cell": "lstm", "decoder_layers": 2}, TRANSFORMER], ids=str
)
@pytest.mark.parametrize("kind", [None, Steps])
@pytest.mark.parametrize("restricted", [False, True])
@torch.no_grad()
@pytest.mark.ci
def test_texts_in_pieces_are_texts_alone(
    options: dict[str, object],
    kind: type[Steps[Any]] | None,
    restricted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Random texts, in one to four pieces, many at a time, some of them empty."""
    monkeypatch.setattr(prefix_states, "ROWS", 3)
    rng = random.Random(1)
    model: AnyModel = make_transformer(9) if options == TRANSFORMER else make(9, 0, **options)
    states = PrefixStates(kind(model) if kind else model, SOURCE, UNITS, restricted)
    nodes, texts, totals = np.zeros(40, np.int64), [list[int]() for _ in range(40)], np.zeros(40)
    for turn in range(4):
        pieces = [[rng.randrange(1, 6) for _ in range(rng.randrange(4))] for _ in texts]
        values, nodes = states.follow(nodes, grid(pieces), end=turn == 3)
        totals += values
        texts = [text + piece for text, piece in zip(texts, pieces, strict=True)]
    expected = [sum(alone(model, text, restricted)) for text in texts]
    np.testing.assert_allclose(totals, expected, atol=1e-5)
    if not restricted:
        pairs = [(SOURCE, [UNITS[place] for place in text]) for text in texts]
        np.testing.assert_allclose(totals, [sum(scores) for scores in word_scores(model, pairs)], atol=1e-5)


def test_each_prefix_is_read_once_and_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of one depth together; the softmax once a call, for what is new."""
    read, asked = list[int](), list[int]()
    advance, log_probs = TrieReader.advance, TrieReader.log_probs

    def advanced(
        reader: TrieReader[DecoderState], state: DecoderState, rows: Tensor, units: Tensor | None
    ) -> tuple[Tensor, DecoderState]:
        read.append(len(rows))
        return advance(reader, state, rows, units)

    def answered(reader: TrieReader[DecoderState], found: Tensor) -> Tensor:
        asked.append(len(found))
        return log_probs(reader, found)

    monkeypatch.setattr(TrieReader, "advance", advanced)
    monkeypatch.setattr(TrieReader, "log_probs", answered)
    states = PrefixStates(make(9, 0, **ATTENTIVE), SOURCE, UNITS)
    root = np.zeros(4, np.int64)
    first, nodes = states.follow(root, grid([[1], [2], [3], [1]]), end=False)
    assert (read, asked) == ([1], [1]) and nodes[0] == nodes[3] and len(set(nodes.tolist())) == 3
    states.follow(root, grid([[1, 2], [1, 3], [3, 3], [1, 2]]), end=False)
    assert (read, asked) == ([1, 2], [1, 2])  # after 1 and 3
    again, same = states.follow(root, grid([[1], [2], [3], [1]]), end=False)
    assert read == [1, 2] and (again == first).all() and (same == nodes).all()
    states.follow(nodes, grid([[2], [1], [4], [2]]), end=True)
    assert (read, asked) == ([1, 2, 1, 3], [1, 2, 4])  # after 2, then after the three different texts
