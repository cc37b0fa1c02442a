"""Stacks: what recombines, what a cut drops."""

import math
import random
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.decoder.arrays import EDGES, FULL, NOTHING, SearchParameters, Sizes, State, allocate
from smt_bridge.decoder.automaton import silent
from smt_bridge.decoder.stacks import add, members, select
from tests.smt_bridge.decoder.models import cuts, decoder, same_lists, sentence, write_model


@pytest.mark.parametrize("seed", range(3))
def test_full_stacks_are_cut_in_time(seed: int, tmp_path: Path) -> None:
    """So many hypotheses that a stack is cut, again and again, while it fills: what the cut drops would not
    have been extended anyway."""
    folder = write_model(tmp_path, seed, options=25, longest=2)
    one, other = (
        decoder(folder, plain, stack=12, table_limit=0, distortion_limit=4) for plain in (False, True)
    )
    dropped = 0  # by a cut
    for number in range(8):
        line = sentence(number, 9)
        same_lists(one.translate_line(line), other.translate_line(line), line)
        dropped += cuts(one)
    assert dropped > 20


def small_state(hypotheses: int, coverages: int) -> State:
    """An empty search of one stack: coverages 0 to C - 1 have translated one word each."""
    state = allocate(Sizes(hypotheses, 4000, coverages, 1, 0, 2, 1, 0))
    state.table[:], state.head[:], state.worst[:], state.best[:] = -1, -1, NOTHING, NOTHING
    state.covered[:] = 1
    return state


def parameters(stack: int, beam: float, reordering: bool = False) -> SearchParameters:
    return SearchParameters(
        words=2, longest=1, stack=stack, beam=beam, distortion=-1, distortion_weight=0.0, early=False,
        reordering=reordering, edges=True, deferred=False, stand_in=0.0,
    )  # fmt: skip


@pytest.mark.parametrize(("stack", "beam"), [(0, -math.inf), (5, -math.inf), (12, -3.0), (0, -2.0)])
@pytest.mark.parametrize("reordering", [False, True])
def test_what_is_extended_is_the_best_of_each_kind(stack: int, beam: float, reordering: bool) -> None:
    """As a dictionary has it: hypotheses of one coverage, end, context and key are one, with reordering also
    of one beginning and one set of forward scores; of these the best in the stack and beam."""
    rng = random.Random(stack)
    given, lms = parameters(stack, beam, reordering), (silent().automaton,)
    # A hash table so full that places collide: only 216 kinds are possible.
    state = small_state(216, 3)._replace(table=np.full(256, -1, np.int32))
    forward_id = np.array([0, 1, 1, 2], np.int32)
    best: dict[tuple[int, ...], float] = {}
    for _ in range(600):
        option, coverage, begin, end, word, key = (rng.randrange(size) for size in (4, 3, 2, 2, 3, 2))
        total = rng.gauss(0, 2)
        add(state, lms, given, forward_id, 0, option, coverage, begin, end, total, total,
            np.array([word], np.int32), key, total)  # fmt: skip
        kind: tuple[int, ...] = (coverage, end, word, key)
        if reordering:
            kind += (begin, int(forward_id[option]))
        best[kind] = max(total, best.get(kind, NOTHING))
    totals = sorted(best.values(), reverse=True)
    expected = [total for total in totals[: stack or None] if total >= totals[0] + beam]
    found = state.total[select(state, given, 1)]
    assert found.tolist() == expected
    assert not stack or len(members(state, 1)) < 2 * stack + 50  # it was cut while it filled
    assert state.counters[EDGES] == 600  # every way is kept for lists


def test_no_room_for_a_hypothesis_is_told() -> None:
    given, lms, state = parameters(0, -math.inf), (silent().automaton,), small_state(2, 1)
    context, forward_id = np.zeros(1, np.int32), np.zeros(1, np.int32)
    made = [
        add(state, lms, given, forward_id, 0, 0, 0, 0, 0, 0.0, 0.0, context, key, 0.0) for key in (5, 6, 7)
    ]
    assert made == [0, 1, -1] and state.counters[FULL]
