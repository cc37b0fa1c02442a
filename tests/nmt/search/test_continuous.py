"""Searching without an end gives what searching once gives."""

import pytest
import torch

from nmt.models.registry import AnyModel
from nmt.search.beam import Candidate, search
from nmt.search.config import BeamConfig
from nmt.search.continuous import ContinuousSearch
from nmt.search.steps import Ensemble, Reading
from tests.nmt.search.models import ATTENTIVE, SOURCES, WORDS, make, make_transformer

OPTIONS: dict[str, dict[str, object]] = {"plain": {}, "attention": ATTENTIVE}
MANY = [source for count in range(3) for source in SOURCES[: 1 + count]]


def same(found: list[Candidate], expected: list[Candidate]) -> None:
    assert [one.words for one in found] == [one.words for one in expected]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-5)
    assert [one.looked_at for one in found] == [one.looked_at for one in expected]


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
    found: dict[int, list[Candidate]] = {}
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
    assert len(work.work.sources) < len(MANY) or every == 1
    assert not len(work.work.history)


def test_an_ensemble() -> None:
    both = Ensemble([make(WORDS, 0), make(WORDS, 1)])
    readings = [Reading((source, source)) for source in SOURCES]
    work = ContinuousSearch(both, BeamConfig(beam_size=3))
    places = [work.add(reading) for reading in readings]
    found: dict[int, list[Candidate]] = {}
    while work.busy:
        found |= dict(work.step())
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
    while work.busy:
        found |= dict(work.step())
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


def test_it_wants_more_while_there_is_room() -> None:
    work = ContinuousSearch(make(WORDS, 0), BeamConfig(beam_size=4, rows=10))
    assert work.wants()
    for _ in range(3):
        work.add(SOURCES[0])
    assert not work.wants()


def test_a_wide_sentence_fits_alone_or_beside_few() -> None:
    work = ContinuousSearch(make(WORDS, 0), BeamConfig(beam_size=4, rows=10))
    assert work.fits(100) and work.wants(10) and not work.wants(11)
    work.add(SOURCES[0])
    assert work.fits(6) and not work.fits(7)
    work.step()
    assert work.fits(10 - work.live) and not work.fits(11 - work.live)


def test_the_history_is_cleared_while_sentences_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.search.continuous.FORGET", 0)
    model, config = make(WORDS, 0), BeamConfig(beam_size=4)
    work = ContinuousSearch(model, config)
    place = work.add(SOURCES[-1])
    found: dict[int, list[Candidate]] = {}
    while work.busy:
        found |= dict(work.step())
        assert len(work.work.history) <= 4 * 60
    same(found[place], search(model, [SOURCES[-1]], config)[0])


def test_it_needs_no_gradient() -> None:
    work = ContinuousSearch(make(WORDS, 0), BeamConfig(beam_size=2))
    work.add(SOURCES[0])
    work.step()
    assert work.rows is None or not work.rows.totals.requires_grad
    assert torch.is_grad_enabled()
