"""Slices and memory of the compiled search: whatever their size, it finds the same."""

from pathlib import Path

import numpy as np
import pytest

from smt_bridge.decoder.arrays import CANDIDATES, WORK, SearchState, StateSizes, allocate
from smt_bridge.decoder.compiled import HAVE_NUMBA
from smt_bridge.decoder.compiled_search import best_candidates
from smt_bridge.decoder.search import search
from tests.smt_bridge.decoder.models import decoder, sentence, write_model


@pytest.mark.parametrize("nbest", [0, 4])
def test_search_in_slices(nbest: int, tmp_path: Path) -> None:
    """Compiled search returns to Python again and again, where signals are seen, and finds the same; no call
    does more than two slices."""
    if not HAVE_NUMBA:
        pytest.skip("needs numba: pip install 'nmt-smt[smt]'")
    one, other = (decoder(write_model(tmp_path, 3), stack=30, nbest=nbest) for _ in range(2))
    assert other.compiled
    other.compiled.piece = 40
    for words in (1, 7, 100):
        ours, theirs = (made.translate_line(sentence(words, words)) for made in (one, other))
        assert [(d.text, d.total) for d in ours.derivations] == [
            (d.text, d.total) for d in theirs.derivations
        ]
    assert one.compiled
    task, calls, place = one.task(one.marked(sentence(5, 100)), one.listing), 0, (0, 0)
    state, parameters = one.compiled.room(task), task.parameters
    while place[0] < 100:
        before = int(state.counters[WORK]) if calls else 0
        place = search(
            state, task.options, one.compiled.automata, one.model.lm_weights, parameters, *place, 500
        )
        calls += 1
        most = 1 + int(task.options.number.sum())  # of one hypothesis
        assert int(state.counters[WORK]) - before <= 1000 + most
    assert calls > 20


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
@pytest.mark.parametrize("short", ["hypotheses", "edges", "coverages", "moves"])
def test_more_memory_where_it_is_needed(short: str, tmp_path: Path) -> None:
    """A search that fills its memory is repeated with twice as much, and finds the same."""
    one, other = (decoder(write_model(tmp_path, 3), stack=30, nbest=4) for _ in range(2))
    assert other.compiled
    room = StateSizes(20_000, 40_000, 4000, 40_000, 0, 100, 1, 0)
    other.compiled.memory.state = allocate(room._replace(**{short: 12}))
    line = sentence(3, 7)
    ours, theirs = (made.translate_line(line) for made in (one, other))
    assert [(d.text, d.total) for d in ours.derivations] == [(d.text, d.total) for d in theirs.derivations]
    assert other.compiled.memory.factor == 2 and one.compiled and one.compiled.memory.factor == 1


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
def test_memory_is_used_again(tmp_path: Path) -> None:
    """Unless a sentence is longer, or a list needs what the best derivation does not."""
    made = decoder(write_model(tmp_path, 1))
    assert made.compiled

    def room(words: int, nbest: int) -> SearchState:
        assert made.compiled
        listing = made.listing_of(nbest, False)
        return made.compiled.room(made.task(made.marked(sentence(1, words)), listing))

    first = room(5, 0)
    assert room(100, 0) is first and not len(first.edge_parent)
    listing = room(5, 3)
    assert listing is not first and len(listing.edge_parent) and room(5, 0) is listing
    assert len(room(101, 0).head) == 102


def test_the_best_candidates_in_their_order() -> None:
    rng = np.random.default_rng(1)
    state = allocate(StateSizes(1, 0, 1, 0, 60, 3, 1, 0))
    state.counters[CANDIDATES] = 50
    state.c_stack[:], state.c_total[:] = rng.integers(1, 4, 60), rng.normal(size=60)
    for stack in (1, 2, 3):
        there = [number for number in range(50) if state.c_stack[number] == stack]
        assert best_candidates(state, stack, 0).tolist() == there
        for beam in (1, 5, 100):
            best = sorted(there, key=lambda number: -state.c_total[number])[:beam]
            assert best_candidates(state, stack, beam).tolist() == sorted(best)
