"""The beam against exhaustive search, greedy search, the scorer and itself."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from nmt.data.batches import Ids
from nmt.errors import ConfigError
from nmt.models.registry import AnyModel
from nmt.models.rnn import RNNTranslator
from nmt.scoring import word_scores
from nmt.search import FinishedHypothesis
from nmt.search.beam import BeamSearch, ContinuousSearch, best_word_finder, search
from nmt.search.config import NORMALIZE, BeamConfig, length_normalizer
from nmt.search.constraints import NoRepeat
from nmt.search.steps import Ensemble, Reading
from nmt.text.vocab import BOS, EOS, UNK
from tests.nmt.search.models import ATTENTIVE, SOURCES, WORDS, Scripted, make, make_transformer

# ---- test beam ---------------------------------------------------------------------------------------------


def exhaustive(
    model: RNNTranslator, source: Ids, longest: int, normalize: str
) -> list[tuple[float, list[int]]]:
    """Every sentence of up to `longest` words, the best first: the slow twin."""
    texts = [
        list(text)
        for length in range(longest + 1)
        for text in itertools.product(range(3, 3 + WORDS), repeat=length)
    ]
    rank = length_normalizer(normalize)
    totals = [sum(scores) for scores in word_scores(model, [(source, text) for text in texts])]
    return sorted(
        ((rank(total, len(text) + 1), text) for total, text in zip(totals, texts, strict=True)), reverse=True
    )


@pytest.mark.parametrize("normalize", list(NORMALIZE))
@pytest.mark.parametrize("options", [{}, {"cell": "lstm"}, {"first_word": "initial"}], ids=str)
def test_a_wide_beam_is_exhaustive(normalize: str, options: dict[str, object]) -> None:
    model = make(WORDS, 0, **options)
    config = BeamConfig(
        beam_size=500, normalize=normalize, max_length_factor=2
    )  # more than all 4-word beginnings times 4
    for source, found in zip(SOURCES[:2], search(model, SOURCES[:2], config), strict=True):
        expected = exhaustive(model, source, 2 * len(source), normalize)
        assert len(found) == len(expected) == sum(WORDS**n for n in range(2 * len(source) + 1))
        assert [candidate.words for candidate in found] == [words for _, words in expected]
        assert [candidate.score for candidate in found] == pytest.approx(
            [score for score, _ in expected], abs=1e-10
        )


@torch.no_grad()
def greedy(model: RNNTranslator, source: Ids, limit: int) -> list[int]:
    state, words = model.start([source]), None
    text: list[int] = []
    while len(text) <= limit:
        log_probs, state = model.step(state, words)
        log_probs[:, [BOS, UNK]] = -math.inf
        best = int(log_probs.argmax())
        if best == EOS:
            break
        text.append(best)
        words = torch.tensor([best])
    return text[:limit]


def test_beam_of_one_is_greedy() -> None:
    model = make(words=20)
    found = search(model, SOURCES, BeamConfig(beam_size=1))
    assert [candidates[0].words for candidates in found] == [
        greedy(model, source, 3 * len(source)) for source in SOURCES
    ]
    assert any(candidates[0].words for candidates in found)


@pytest.mark.parametrize("beam", [1, 3, 10])
@pytest.mark.parametrize("rows", [1, 7, 100])
def test_batches_equal_one_by_one(beam: int, rows: int) -> None:
    model = make(words=20, seed=4)
    config = BeamConfig(beam_size=beam, rows=rows)
    together = search(model, SOURCES, config)
    alone = [search(model, [source], config)[0] for source in SOURCES]
    assert [[c.words for c in candidates] for candidates in together] == [
        [c.words for c in candidates] for candidates in alone
    ]
    for a, b in zip(itertools.chain(*together), itertools.chain(*alone), strict=True):
        assert a.log_prob == pytest.approx(b.log_prob, abs=1e-10)


@pytest.mark.parametrize("normalize", list(NORMALIZE))
def test_log_probs_are_the_scorers(normalize: str) -> None:
    model = make(words=20, seed=5)
    for source, candidates in zip(
        SOURCES, search(model, SOURCES, BeamConfig(beam_size=6, normalize=normalize)), strict=True
    ):
        scores = word_scores(model, [(source, candidate.words) for candidate in candidates])
        assert [candidate.log_prob for candidate in candidates] == pytest.approx(
            [sum(row) for row in scores], abs=1e-10
        )
        ranks = [length_normalizer(normalize)(c.log_prob, len(c.words) + 1) for c in candidates]
        assert [candidate.score for candidate in candidates] == ranks == sorted(ranks, reverse=True)


def test_at_most_beam_size_different_results_without_unknown_words() -> None:
    for candidates in search(make(words=20), SOURCES, BeamConfig(beam_size=6)):
        assert 1 <= len(candidates) <= 6
        assert len({tuple(candidate.words) for candidate in candidates}) == len(candidates)
        assert not {BOS, EOS, UNK} & {word for candidate in candidates for word in candidate.words}


def test_the_beam_shrinks_by_one_with_each_end() -> None:
    """Beam 2: the empty sentence ends at once, so ONE continuation of [3] survives; a beam that did not
    shrink would keep [3, 5]."""
    model = Scripted({(): {EOS: 0.5, 3: 0.3, 4: 0.2}, (3,): {4: 0.6, 5: 0.4}})
    found = search(model, [[3]], BeamConfig(beam_size=2, normalize="none"))[0]
    assert [(candidate.words, round(math.exp(candidate.log_prob), 6)) for candidate in found] == [
        ([], 0.5),
        ([3, 4], 0.18),
    ]


def refilled(model: RNNTranslator, source: Ids, config: BeamConfig) -> list[tuple[float, list[int]]]:
    """The slow twin of a beam that stays full: one hypothesis after the other, without states."""
    rank, width = length_normalizer(config.normalize), config.beam_size
    live, finished = [(0.0, list[int]())], list[tuple[float, list[int]]]()
    for step in range(config.longest(len(source)) + 1):
        totals = [
            (total + log_p, [*text, word])
            for total, text in live
            for word, log_p in enumerate(next_words(model, source, text))
            if word not in (BOS, UNK)
        ]
        best = sorted(totals, key=lambda pair: -pair[0])[: 2 * width]
        finished += [(rank(total, step + 1), text[:-1]) for total, text in best[:width] if text[-1] == EOS]
        finished = sorted(finished, reverse=True)[:width]
        live = [pair for pair in best if pair[1][-1] != EOS][:width]
        if len(finished) == width and rank(live[0][0], step + 1) <= finished[-1][0]:
            break
    return finished


@torch.no_grad()
def next_words(model: RNNTranslator, source: Ids, text: list[int]) -> list[float]:
    log_probs, state = model.step(model.start([source]), None)
    for word in text:
        log_probs, state = model.step(state, torch.tensor([word]))
    return [float(value) for value in log_probs[0]]


@pytest.mark.parametrize("normalize", ["length", "none"])
@pytest.mark.parametrize("rows", [1, 100])
def test_a_beam_that_stays_full(normalize: str, rows: int) -> None:
    model = make(words=6, seed=3)
    config = BeamConfig(beam_size=4, ended="refill", normalize=normalize, rows=rows)
    found = search(model, SOURCES, config)
    for source, candidates in zip(SOURCES, found, strict=True):
        expected = refilled(model, source, config)
        assert [candidate.words for candidate in candidates] == [text for _, text in expected]
        scores = [candidate.score for candidate in candidates]
        assert scores == pytest.approx([score for score, _ in expected])
    assert found != search(model, SOURCES, replace(config, ended="shrink"))
    with pytest.raises(ConfigError, match="ended: refill cannot be combined with constraints"):
        search(model, SOURCES, replace(config, no_repeat_ngram=2))


def test_a_refused_sentence_leaves_the_search_as_it_was() -> None:
    work = ContinuousSearch(make(), BeamConfig(ended="refill"))
    with pytest.raises(ConfigError, match="ended: refill"):
        work.add(SOURCES[0], constraints=[NoRepeat(2)])
    assert not work.busy and work.add(SOURCES[0]) == 0 and work.step() is not None


@torch.no_grad()
def test_a_beam_that_stays_full_finds_its_best_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """By way of an output layer that need not score all words."""
    found = []
    for sooner in (True, False):
        torch.manual_seed(0)
        model = make(words=30, output="tree")
        if not sooner:
            monkeypatch.setattr(type(model.output_layer), "finds_best_sooner", False)
        found.append([[c.words for c in row] for row in search(model, SOURCES, BeamConfig(ended="refill"))])
    assert found[0] == found[1]


def test_length_normalization_prefers_the_longer() -> None:
    """log .4 / 1 = -.92 for the empty sentence, log .36 / 3 = -.34 for two words."""
    model = Scripted({(): {EOS: 0.4, 3: 0.6}, (3,): {3: 0.6, 4: 0.4}, (3, 3): {EOS: 1.0}})
    by = {
        name: search(model, [[3]], BeamConfig(beam_size=4, normalize=name))[0][0].words
        for name in ("length", "none")
    }
    assert by == {"length": [3, 3], "none": []}


def test_scores_that_are_no_numbers_do_not_hang() -> None:
    model = make()
    with torch.no_grad():
        model.decoder.output.words.fill_(math.nan)
    assert search(model, [[3]], BeamConfig()) == [
        [FinishedHypothesis([], -math.inf, -math.inf, complete=False)]
    ]


@pytest.mark.parametrize(
    "options",
    [
        ATTENTIVE,
        {"encoder": "grconv"},
        {"decoder_layers": 2, "attention": 4},
        {"cell": "lstm", "encoder": "birnn"},
    ],
    ids=str,
)
def test_every_model_searches_as_it_scores(options: dict[str, object]) -> None:
    """In a batch whose sentences finish and are replaced, each is found as alone, with the scorer's
    probability."""
    model = make(words=20, seed=3, **options)
    sources = [*SOURCES, [3], [4, 5, 6, 3, 3, 3], [5, 6], [6]]
    together = search(model, sources, BeamConfig(beam_size=3, rows=9))
    for source, candidates in zip(sources, together, strict=True):
        alone = search(model, [source], BeamConfig(beam_size=3))[0]
        assert [candidate.words for candidate in candidates] == [candidate.words for candidate in alone]
        assert [candidate.looked_at for candidate in candidates] == [
            candidate.looked_at for candidate in alone
        ]
        scores = word_scores(model, [(source, candidate.words) for candidate in candidates])
        assert [candidate.log_prob for candidate in candidates] == pytest.approx(
            [sum(row) for row in scores], abs=1e-10
        )


def test_rows_are_refilled() -> None:
    """12 sentences of one word, room for three: with refilling no step has one sentence alone while others
    wait."""
    model = make(words=20, seed=4)
    sizes = []
    step = model.step

    def counted(state, words):  # type: ignore[no-untyped-def]
        sizes.append((len(state.sentence), words is None))
        return step(state, words)

    model.step = counted  # type: ignore[method-assign]
    search(model, [[3 + n % 4] * (1 + n % 3) for n in range(12)], BeamConfig(beam_size=2, rows=6))
    first = [size for size, begins in sizes if begins]
    assert (
        sum(first) == 12 and len(first) > 4
    )  # more often, and fewer at a time, than four whole batches of three
    assert max(size for size, _ in sizes) <= 6


@pytest.mark.parametrize("reverse", [False, True])
def test_looks_are_positions_of_the_source(reverse: bool) -> None:
    """The weights that the search reads off are those of the model's own steps; a reversed source gives
    unreversed positions."""
    model = make(words=20, seed=5, reverse=reverse, **ATTENTIVE)
    source = [3, 4, 5, 6]
    candidate = search(model, [source, [4]], BeamConfig(beam_size=2))[0][0]
    with torch.no_grad():
        state, words = model.start([source]), None
        for word, look in zip(candidate.words, candidate.looked_at, strict=True):
            _, state = model.step(state, words)
            assert state.weights is not None and state.weights.shape == (1, 5)
            assert float(state.weights.sum()) == pytest.approx(1, abs=1e-12)
            best = int(state.weights[0, :4].argmax())
            assert look == (3 - best if reverse else best)
            words = torch.tensor([word])


# ---- test beam limits --------------------------------------------------------------------------------------
# What a search must keep to: bounds of length, forced prefixes, unknown words, settings in range.


def test_nothing_finished_ends_where_the_limit_stands() -> None:
    endless = {tuple([3] * n): {3: 0.9, EOS: 0.1} for n in range(50)}
    found = search(Scripted(endless), [[3, 3], [3]], BeamConfig(beam_size=1))
    assert [(c.words, c.complete) for candidates in found for c in candidates] == [
        ([3] * 6, False),
        ([3] * 3, False),
    ]
    assert found[0][0].log_prob == pytest.approx(6 * math.log(0.9) + math.log(0.1), abs=1e-6)


def test_minimum_length() -> None:
    found = search(make(words=20), SOURCES, BeamConfig(beam_size=4, min_length_factor=1.0))
    assert all(
        len(candidate.words) >= len(source)
        for source, candidates in zip(SOURCES, found, strict=True)
        for candidate in candidates
    )


def test_lengths() -> None:
    model = make(words=20)
    for config, least, most in (
        (BeamConfig(3, min_length=4), 4, 99),
        (BeamConfig(3, max_length=2), 0, 2),
        (BeamConfig(3, min_length=2, max_length=2), 2, 2),
    ):
        for candidates in search(model, SOURCES, config):
            assert all(least <= len(candidate.words) <= most for candidate in candidates)


def test_a_forced_prefix() -> None:
    """Every translation begins with its prefix, an unknown word included, and has the scorer's probability;
    no prefix, no change."""
    model = make(words=20)
    prefixes = [[4, 5], [], [UNK, 3], [7] * 8, []]
    free = search(model, SOURCES, BeamConfig(4))
    for row, candidates in enumerate(search(model, SOURCES, BeamConfig(4), prefixes)):
        assert all(candidate.words[: len(prefixes[row])] == prefixes[row] for candidate in candidates)
        scores = word_scores(model, [(SOURCES[row], candidate.words) for candidate in candidates])
        assert [candidate.log_prob for candidate in candidates] == pytest.approx(
            [sum(values) for values in scores], abs=1e-10
        )
        if not prefixes[row]:
            assert [candidate.words for candidate in candidates] == [
                candidate.words for candidate in free[row]
            ]
    best = free[0][0].words
    assert search(model, SOURCES[:1], BeamConfig(4), [best[:2]])[0][0].words == best


def test_unknown_words_where_they_are_allowed() -> None:
    model = Scripted({(): {UNK: 0.9, 3: 0.1}})
    assert [candidate.words for candidate in search(model, [[3]], BeamConfig(2))[0]] == [[3]]
    assert [candidate.words for candidate in search(model, [[3]], BeamConfig(2, allow_unknown=True))[0]] == [
        [UNK],
        [3],
    ]


def test_settings_out_of_range_are_refused_before_any_work() -> None:
    model: Any = None
    with pytest.raises(ConfigError, match="max_length_factor"):
        search(model, [[3]], BeamConfig(max_length_factor=0))
    with pytest.raises(ConfigError, match="beam_size"):
        ContinuousSearch(model, BeamConfig(beam_size=0))


# ---- test continuous ---------------------------------------------------------------------------------------
# Searching without an end gives what searching once gives.


OPTIONS: dict[str, dict[str, object]] = {"plain": {}, "attention": ATTENTIVE}
MANY = [source for count in range(3) for source in SOURCES[: 1 + count]]


def same(found: list[FinishedHypothesis], expected: list[FinishedHypothesis]) -> None:
    for values in ("words", "looked_at", "complete"):
        assert [getattr(one, values) for one in found] == [getattr(one, values) for one in expected]
    for values in ("log_prob", "score"):
        numbers = [getattr(one, values) for one in expected]
        assert [getattr(one, values) for one in found] == pytest.approx(numbers, abs=1e-5)


def finish(work: ContinuousSearch[Any]) -> dict[int, list[FinishedHypothesis]]:
    """The hypotheses of all sentences that are still being searched, by slot."""
    found: dict[int, list[FinishedHypothesis]] = {}
    while work.busy:
        found |= dict(work.step())
    return found


def model_of(kind: str) -> AnyModel:
    return make_transformer() if kind == "transformer" else make(WORDS, 0, **OPTIONS[kind])


@pytest.mark.parametrize("every", [1, 4])
@pytest.mark.parametrize("kind", ["plain", "attention", "transformer"])
def test_sentences_that_come_one_after_the_other(every: int, kind: str) -> None:
    """One more sentence every few steps, of three beam sizes, in so few rows that places are used again."""
    model = model_of(kind)
    work = ContinuousSearch(model, BeamConfig(beam_size=4, rows=14))
    widths = [(4, 2, 7)[number % 3] for number in range(len(MANY))]
    coming, numbers = list(range(len(MANY))), dict[int, int]()
    found: dict[int, list[FinishedHypothesis]] = {}
    steps = 0
    while coming or work.busy:
        if coming and steps % every == 0:
            number = coming.pop(0)
            place = work.add(MANY[number], widths[number])
            assert place not in numbers
            numbers[place] = number
        for place, candidates in work.step():
            found[numbers.pop(place)] = candidates
        steps += 1
    for number, (source, width) in enumerate(zip(MANY, widths, strict=True)):
        same(found[number], search(model, [source], BeamConfig(beam_size=width))[0])
    assert len(work.beam.sources) < len(MANY) or every == 1
    assert not len(work.beam.history)


def test_an_ensemble() -> None:
    both = Ensemble([make(WORDS, 0), make(WORDS, 1)])
    readings = [Reading((source, source)) for source in SOURCES]
    work = ContinuousSearch(both, BeamConfig(beam_size=3))
    places = [work.add(reading) for reading in readings]
    found = finish(work)
    for place, reading in zip(places, readings, strict=True):
        same(found[place], search(both, [reading], BeamConfig(beam_size=3))[0])


def test_a_cancelled_sentence_leaves_the_others_alone() -> None:
    model, config = make(WORDS, 0), BeamConfig(beam_size=3, rows=9)
    work = ContinuousSearch(model, config)
    places = [work.add(source) for source in (*SOURCES, *SOURCES)]
    found = dict(work.step())
    gone = [place for place in (places[0], places[-1]) if place not in found]
    for place in gone:
        work.cancel(place)
    found |= finish(work)
    assert set(found) == set(places) - set(gone)
    for place, source in zip(places, (*SOURCES, *SOURCES), strict=True):
        if place not in gone:
            same(found[place], search(model, [source], config)[0])


def test_the_last_one_cancelled_ends_the_work() -> None:
    work = ContinuousSearch(make(WORDS, 0), BeamConfig(beam_size=3))
    place = work.add(SOURCES[-1])
    work.step()
    work.cancel(place)
    assert not work.busy and work.add(SOURCES[0]) == place


def test_there_is_room_until_most_rows_are_in_use_and_a_wide_sentence_starts_alone() -> None:
    work = ContinuousSearch(make(WORDS, 0), BeamConfig(beam_size=4, rows=10))
    assert work.has_room()
    for _ in range(3):
        work.add(SOURCES[0])
    assert not work.has_room()
    work = ContinuousSearch(make(WORDS, 0), BeamConfig(beam_size=4, rows=10))
    assert work.may_start(100) and work.has_room(10) and not work.has_room(11)
    work.add(SOURCES[0])
    assert work.may_start(6) and not work.may_start(7)
    work.step()
    assert work.may_start(10 - work.live) and not work.may_start(11 - work.live)


def test_the_history_is_cleared_while_sentences_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.search.beam.FORGET_NODES", 0)
    model, config = make(WORDS, 0), BeamConfig(beam_size=4)
    work = ContinuousSearch(model, config)
    place = work.add(SOURCES[-1])
    found: dict[int, list[FinishedHypothesis]] = {}
    while work.busy:
        found |= dict(work.step())
        assert len(work.beam.history) <= 4 * 60
    same(found[place], search(model, [SOURCES[-1]], config)[0])


def test_it_needs_no_gradient() -> None:
    work = ContinuousSearch(make(WORDS, 0), BeamConfig(beam_size=2))
    work.add(SOURCES[0])
    work.step()
    assert work.rows is None or not work.rows.totals.requires_grad
    assert torch.is_grad_enabled()


# ---- test finder -------------------------------------------------------------------------------------------
# A search that asks an output layer for its best words against one that asks for all.


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
TREE_WORDS = 40


def model_with_layer(kind: str, layer: str) -> AnyModel:
    settings = LAYERS[layer]
    if kind == "transformer":
        return make_transformer(TREE_WORDS, tied="none", **settings)
    return make(TREE_WORDS, 0, **ATTENTIVE, **settings)


def all_same(found: list[list[FinishedHypothesis]], expected: list[list[FinishedHypothesis]]) -> None:
    for some, others in zip(found, expected, strict=True):
        same(some, others)


@pytest.mark.ci
@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("kind", ["rnn", "transformer"])
def test_the_same_translations(kind: str, layer: str, config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_with_layer(kind, layer)
    assert best_word_finder(model) is None
    of_all = search(model, SOURCES, CONFIGS[config])
    monkeypatch.setattr("nmt.layers.output.hierarchy.LARGE_VOCABULARY", 0)
    monkeypatch.setattr("nmt.layers.output.hierarchy.SHALLOW", 99)
    monkeypatch.setattr("nmt.layers.output.hierarchy.UNEVEN", 99)
    assert best_word_finder(model) is not None
    monkeypatch.setattr(type(model), "step", None)  # log p of all words is not asked for
    all_same(search(model, SOURCES, CONFIGS[config]), of_all)
    if config == "never ends":
        assert not all(one.complete for candidates in of_all for one in candidates)


def test_what_needs_all_words_asks_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefixes, ensembles, layers for which that is faster."""
    model = model_with_layer("rnn", "tree")
    of_all = search(model, SOURCES, CONFIGS["beam"], [[5, 6]] * len(SOURCES))
    monkeypatch.setattr("nmt.layers.output.hierarchy.LARGE_VOCABULARY", 0)
    all_same(search(model, SOURCES, CONFIGS["beam"], [[5, 6]] * len(SOURCES)), of_all)
    assert best_word_finder(Ensemble([model, model])) is None
    assert best_word_finder(make(TREE_WORDS, 0)) is None
    assert best_word_finder(model_with_layer("rnn", "tree")) is not None
    assert best_word_finder(model_with_layer("rnn", "huffman")) is None  # binary trees are deep
    classes = model_with_layer("rnn", "classes")
    assert isinstance(classes, RNNTranslator)
    assert best_word_finder(classes) is not None
    classes.output_layer.learn(
        np.array([5] * 1000 + list(range(3 + TREE_WORDS)))
    )  # most words are in one class
    assert best_word_finder(classes) is None


def test_a_prefix_comes_into_a_search_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search without an end changes over in its middle."""
    monkeypatch.setattr("nmt.layers.output.hierarchy.LARGE_VOCABULARY", 0)
    model = model_with_layer("rnn", "learned")
    alone = [search(model, [source], CONFIGS["beam"])[0] for source in SOURCES[:2]]
    work = ContinuousSearch(model, CONFIGS["beam"])
    assert isinstance(work.beam, BeamSearch) and work.beam.finder is not None
    places = [work.add(SOURCES[0])]
    found = dict(work.step())
    work.beam.forced = True  # as by a sentence with a prefix
    places.append(work.add(SOURCES[1]))
    found |= finish(work)
    all_same([found[place] for place in places], alone)
