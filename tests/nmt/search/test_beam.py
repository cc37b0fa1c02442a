"""The beam against exhaustive search, greedy search, the scorer and itself."""

import itertools
import math

import pytest
import torch

from nmt.data.batches import Ids
from nmt.models.rnn.translator import Translator
from nmt.scoring import word_scores
from nmt.search import penalties
from nmt.search.beam import Candidate, search
from nmt.search.config import BeamConfig
from nmt.text.vocab import BOS, EOS, UNK
from tests.nmt.search.models import ATTENTIVE, SOURCES, WORDS, Scripted, make


def exhaustive(model: Translator, source: Ids, longest: int, normalize: str) -> list[tuple[float, list[int]]]:
    """Every sentence of up to `longest` words, the best first: the slow twin."""
    texts = [
        list(text)
        for length in range(longest + 1)
        for text in itertools.product(range(3, 3 + WORDS), repeat=length)
    ]
    rank = penalties.by_name(normalize)
    totals = [sum(scores) for scores in word_scores(model, [(source, text) for text in texts])]
    return sorted(
        ((rank(total, len(text) + 1), text) for total, text in zip(totals, texts, strict=True)), reverse=True
    )


@pytest.mark.parametrize("normalize", list(penalties.NORMALIZE))
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
def greedy(model: Translator, source: Ids, limit: int) -> list[int]:
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


@pytest.mark.parametrize("normalize", list(penalties.NORMALIZE))
def test_log_probs_are_the_scorers(normalize: str) -> None:
    model = make(words=20, seed=5)
    for source, candidates in zip(
        SOURCES, search(model, SOURCES, BeamConfig(beam_size=6, normalize=normalize)), strict=True
    ):
        scores = word_scores(model, [(source, candidate.words) for candidate in candidates])
        assert [candidate.log_prob for candidate in candidates] == pytest.approx(
            [sum(row) for row in scores], abs=1e-10
        )
        ranks = [penalties.by_name(normalize)(c.log_prob, len(c.words) + 1) for c in candidates]
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
    assert search(model, [[3]], BeamConfig()) == [[Candidate([], -math.inf, -math.inf, complete=False)]]


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
