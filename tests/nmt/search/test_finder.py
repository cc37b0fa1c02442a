"""A search that asks an output layer for its best words against one that asks for all."""

import numpy as np
import pytest

from nmt.layers.output import LearnsText, hierarchy
from nmt.models.registry import AnyModel
from nmt.models.rnn.translator import Translator
from nmt.search.beam import BeamSearch, Candidate, search
from nmt.search.config import BeamConfig
from nmt.search.continuous import ContinuousSearch
from nmt.search.finder import finder_of
from nmt.search.steps import Ensemble
from tests.nmt.search.models import ATTENTIVE, SOURCES, make, make_transformer

LAYERS: dict[str, dict[str, object]] = {
    "classes": {"output": "classes"},
    "tree": {"output": "tree", "output_tree": "random", "output_arity": 5},
    "huffman": {"output": "tree"},
    "learned": {"output": "learned-tree"},
}
CONFIGS = {
    "beam": BeamConfig(beam_size=4),
    "greedy": BeamConfig(beam_size=1),
    "wider than the vocabulary": BeamConfig(beam_size=60),
    "long": BeamConfig(beam_size=3, min_length_factor=1.5, max_length_factor=2),
    "unknown": BeamConfig(beam_size=3, allow_unknown=True, max_length_factor=2),
    "never ends": BeamConfig(beam_size=2, max_length_factor=0.5),
}
WORDS = 40


def model_of(kind: str, layer: str) -> AnyModel:
    settings = LAYERS[layer]
    if kind == "transformer":
        return make_transformer(WORDS, tied="none", **settings)
    return make(WORDS, 0, **ATTENTIVE, **settings)


def same(found: list[list[Candidate]], expected: list[list[Candidate]]) -> None:
    for some, others in zip(found, expected, strict=True):
        assert [one.words for one in some] == [one.words for one in others]
        assert [one.log_prob for one in some] == pytest.approx([one.log_prob for one in others], abs=1e-5)
        assert [one.looked_at for one in some] == [one.looked_at for one in others]
        assert [one.complete for one in some] == [one.complete for one in others]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("kind", ["rnn", "transformer"])
def test_the_same_translations(kind: str, layer: str, config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(kind, layer)
    assert finder_of(model) is None
    of_all = search(model, SOURCES, CONFIGS[config])
    monkeypatch.setattr(hierarchy, "LARGE", 0)
    monkeypatch.setattr(hierarchy, "SHALLOW", 99)
    monkeypatch.setattr(hierarchy, "UNEVEN", 99)
    assert finder_of(model) is not None
    monkeypatch.setattr(type(model), "step", None)  # log p of all words is not asked for
    same(search(model, SOURCES, CONFIGS[config]), of_all)
    if config == "never ends":
        assert not all(one.complete for candidates in of_all for one in candidates)


def test_what_needs_all_words_asks_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefixes, ensembles, layers for which that is faster."""
    model = model_of("rnn", "tree")
    of_all = search(model, SOURCES, CONFIGS["beam"], [[5, 6]] * len(SOURCES))
    monkeypatch.setattr(hierarchy, "LARGE", 0)
    same(search(model, SOURCES, CONFIGS["beam"], [[5, 6]] * len(SOURCES)), of_all)
    assert finder_of(Ensemble([model, model])) is None
    assert finder_of(make(WORDS, 0)) is None
    assert finder_of(model_of("rnn", "tree")) is not None
    assert finder_of(model_of("rnn", "huffman")) is None  # binary trees are deep
    classes = model_of("rnn", "classes")
    assert isinstance(classes, Translator) and isinstance(classes.output_layer, LearnsText)
    assert finder_of(classes) is not None
    classes.output_layer.learn(np.array([5] * 1000 + list(range(3 + WORDS))))  # most words are in one class
    assert finder_of(classes) is None


def test_a_prefix_comes_into_a_search_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search without an end changes over in its middle."""
    monkeypatch.setattr(hierarchy, "LARGE", 0)
    model = model_of("rnn", "learned")
    alone = [search(model, [source], CONFIGS["beam"])[0] for source in SOURCES[:2]]
    work = ContinuousSearch(model, CONFIGS["beam"])
    assert isinstance(work.work, BeamSearch) and work.work.finder is not None
    places = [work.add(SOURCES[0])]
    found = dict(work.step())
    work.work.forced = True  # as by a sentence with a prefix
    places.append(work.add(SOURCES[1]))
    while work.busy:
        found.update(work.step())
    same([found[place] for place in places], alone)
