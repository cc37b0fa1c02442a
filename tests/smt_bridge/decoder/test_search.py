"""Search without limits = all derivations; negative weights."""

import math
import random
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.decoder.arrays import (
    EDGES,
    FULL,
    NOTHING,
    SearchParameters,
    SearchState,
    StateSizes,
    allocate,
)
from smt_bridge.decoder.automaton import silent
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.feature_values import columns, features
from smt_bridge.decoder.search import push, select, stack_members
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.decoder.xml_input import MarkedLine
from tests.smt_bridge.decoder.models import (
    UNLIMITED,
    all_weights,
    cuts,
    decoder,
    same_lists,
    sentence,
    write_model,
)

# ---- test search -------------------------------------------------------------------------------------------


def exhaustive(made: Decoder, line: str) -> dict[tuple[int, ...], float]:
    """The total of every derivation, from its features alone."""
    task = made.task(MarkedLine(line.split(" ")), made.listing)
    paths = every_path(task.sentence, made.settings.distortion_limit)
    values = features(made.options, columns(made.options, task, [np.array(path, np.int32) for path in paths]))
    unknown = [sum(task.sentence.rows[option] < 0 for option in path) for path in paths]
    totals = values @ all_weights(made) - 100 * np.array(unknown)
    return dict(zip(paths, totals.tolist(), strict=True))


def every_path(part: Sentence, limit: int) -> list[tuple[int, ...]]:
    """The options of every derivation: any order of phrases that the distortion limit allows."""
    n, found = len(part.words), list[tuple[int, ...]]()

    def extend(path: tuple[int, ...], covered: frozenset[int], end: int) -> None:
        if len(covered) == n:
            found.append(path)
            return
        gap = min(set(range(n)) - covered)
        for option in range(len(part.rows)):
            begin, last = int(part.begin[option]), int(part.last[option])
            span = set(range(begin, last + 1))
            if span & covered or (
                limit >= 0 and (abs(begin - end - 1) > limit or (begin != gap and last + 1 - gap > limit))
            ):
                continue
            extend((*path, option), covered | span, last)

    extend((), frozenset(), -1)
    return found


@pytest.mark.ci
@pytest.mark.parametrize("seed", range(6))
def test_unlimited_stacks_are_exhaustive(seed: int, tmp_path: Path) -> None:
    """The best total of all derivations, and the hundred best ones, in order."""
    folder = write_model(
        tmp_path, seed, options=2, reordering=seed % 2 == 0, columns=4 + seed % 3, lms=1 + seed % 2
    )
    made = decoder(folder, nbest=100, distortion_limit=-1 if seed == 5 else 2, **UNLIMITED)
    for words in (1, 3, 4):
        line = sentence(seed, words)
        totals = sorted(exhaustive(made, line).values(), reverse=True)
        found = [derivation.total for derivation in made.translate_line(line).derivations]
        # Recombination keeps every derivation: what the list holds is the head of the whole.
        np.testing.assert_allclose(found, totals[: len(found)], atol=1e-9)
        assert len(found) == min(100, len(totals))


def test_negative_weights(tmp_path: Path) -> None:
    """No bound may drop what a language model of negative weight likes."""
    folder = write_model(tmp_path, 1)
    one, other = (decoder(folder, plain, stack=3) for plain in (False, True))
    one, other = (Decoder(made.system, made.config, {**made.weights, "LM0": [-0.5]}) for made in (one, other))
    other.compiled = None
    for number in range(60):
        line = sentence(number, 2 + number % 6)
        same_lists(one.translate_line(line), other.translate_line(line), line)


# ---- test stacks -------------------------------------------------------------------------------------------
# Stacks: what recombines, what a cut drops.


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


def small_state(hypotheses: int, coverages: int) -> SearchState:
    """An empty search of one stack: coverages 0 to C - 1 have translated one word each."""
    state = allocate(StateSizes(hypotheses, 4000, coverages, 1, 0, 2, 1, 0))
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
        push(state, lms, given, forward_id, 0, option, coverage, begin, end, total, total,
            np.array([word], np.int32), key, total)  # fmt: skip
        kind: tuple[int, ...] = (coverage, end, word, key)
        if reordering:
            kind += (begin, int(forward_id[option]))
        best[kind] = max(total, best.get(kind, NOTHING))
    totals = sorted(best.values(), reverse=True)
    expected = [total for total in totals[: stack or None] if total >= totals[0] + beam]
    found = state.total[select(state, given, 1)]
    assert found.tolist() == expected
    assert not stack or len(stack_members(state, 1)) < 2 * stack + 50  # it was cut while it filled
    assert state.counters[EDGES] == 600  # every way is kept for lists


def test_no_room_for_a_hypothesis_is_told() -> None:
    given, lms, state = parameters(0, -math.inf), (silent().automaton,), small_state(2, 1)
    context, forward_id = np.zeros(1, np.int32), np.zeros(1, np.int32)
    made = [
        push(state, lms, given, forward_id, 0, 0, 0, 0, 0, 0.0, 0.0, context, key, 0.0) for key in (5, 6, 7)
    ]
    assert made == [0, 1, -1] and state.counters[FULL]
