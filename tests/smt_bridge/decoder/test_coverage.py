"""Coverages, and the spans that may be translated after each: bits equal sets of words."""

import random
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.decoder import plain, search
from smt_bridge.decoder.arrays import COVERAGES, FULL, OptionArrays, StateSizes, allocate, constraints
from smt_bridge.decoder.compiled_search import CompiledSearch
from smt_bridge.decoder.coverage import covered_and_future, extend_coverage, find_moves, permits
from smt_bridge.decoder.xml_input import MarkedLine
from tests.smt_bridge.decoder.models import decoder, sentence, write_model

# ---- test arrays -------------------------------------------------------------------------------------------
# The memory of compiled search: as much as its sizes say.


GROUPS = {
    "hypotheses": "hypotheses memory",
    "edges": "edges",
    "coverages": "coverages",
    "moves": "moves",
    "candidates": "candidates",
    "regions": "regions",
    "contexts": "states",
    "scores": "lm_scores lm_alone",
}


def test_each_array_has_room_for_its_group() -> None:
    sizes = StateSizes(
        hypotheses=11, edges=0, coverages=4, moves=17, candidates=3, words=6, contexts=13, scores=19,
        models=2, features=5, regions=7, scored=8,
    )  # fmt: skip
    state = allocate(sizes)
    left = set(state._fields) - {"counters"}
    for group, names in GROUPS.items():
        for name in names.split():
            assert len(getattr(state, name)) == getattr(sizes, group), name
            left.remove(name)
    for name in ("stacks", "candidate_best"):
        assert len(getattr(state, name)) == sizes.words + 1
        left.remove(name)
    assert len(state.blocks) == 5
    tables = {"table", "coverage_table", "context_table", "block_table", "region_table"}
    assert left == tables | {"blocks"}
    assert state.states.shape == (13, 2) and state.memory.shape == (11, 5)
    assert state.candidate_best.shape == (7, 8)


def test_hash_tables_stay_half_empty() -> None:
    """Sizes are powers of two, so that a mask gives the slot, and a search for a missing key always ends."""
    for size in range(1, 70):
        state = allocate(StateSizes(size, 0, size, 0, 0, 1, size, 0, 1, 0))
        for table in (state.table, state.coverage_table, state.context_table):
            assert len(table).bit_count() == 1 and 2 * size <= len(table) < 4 * size
            assert table.dtype == np.int32


# ---- test coverage -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [3, -1])
def test_sentences_of_any_length(limit: int, tmp_path: Path) -> None:
    """A coverage of 150 words does not fit into one machine word. Every word is translated once."""
    made = decoder(write_model(tmp_path, 4), stack=5, distortion_limit=limit)
    translation = made.translate_line(sentence(1, 150))
    part = translation.sentence
    assert part
    spans = sorted(
        (int(part.first[option]), int(part.last[option])) for option in translation.derivations[0].options
    )
    assert [word for begin, last in spans for word in range(begin, last + 1)] == list(range(150))


def coverage(translated: set[int], words: int) -> tuple[int, np.uint64]:
    """The first untranslated word, and a bit for each word from there on."""
    gap = next(word for word in range(words + 1) if word not in translated)
    return gap, np.uint64(sum(1 << (word - gap) for word in translated if word > gap))


def words_of(gap: int, mask: int) -> set[int]:
    return {*range(gap), *(gap + place for place in range(64) if mask >> place & 1)}


def test_bits_are_sets() -> None:
    """Adding a span, counting words and the future cost give the same results as with sets of words."""
    rng, numbers = random.Random(2), np.random.default_rng(2)
    for _ in range(500):
        n = rng.randint(1, 20)
        covered = {word for word in range(n) if rng.random() < 0.5}
        gap, mask = coverage(covered, n)
        future = numbers.normal(size=(n, n))
        count, cost = covered_and_future(gap, mask, future, n)
        expected = plain.future(OptionArrays(*[None] * 10, future, None), frozenset(covered), n)  # type: ignore[arg-type, call-arg]
        assert count == len(covered) and abs(cost - expected) < 1e-12
        begin, last = sorted((rng.randrange(n), rng.randrange(n)))
        if not covered & set(range(begin, last + 1)):
            found, bits = extend_coverage(gap, mask, begin, last)
            both = covered | set(range(begin, last + 1))
            assert words_of(int(found), int(bits)) == both
            assert found not in both


@pytest.mark.parametrize("limit", [-1, 0, 2, 4])
@pytest.mark.ci
def test_moves_are_the_free_spans(limit: int, tmp_path: Path) -> None:
    """For every coverage that can be reached, the moves are the untranslated spans with options that leave
    the first gap within reach, each with the resulting coverage."""
    made = decoder(write_model(tmp_path, 1), distortion_limit=limit)
    task = made.task(MarkedLine("a zz b c a d".split()), made.listing)
    n, options = 6, task.options
    state = allocate(StateSizes(10, 0, 200, 2000, 0, n, 10, 0, 1, 0))
    room = np.zeros(1, np.int32)
    lms = CompiledSearch(made.model.automata or ()).lms
    search.start_search(state, options, lms, task.parameters, room)
    number = 0
    while number < state.counters[COVERAGES]:
        find_moves(state, options, task.parameters, number)
        coverage = state.coverages[number]
        covered, gap = words_of(int(coverage.gap), int(coverage.mask)), int(coverage.gap)
        moves = slice(coverage.first_move, coverage.first_move + coverage.moves)
        found = {}
        for begin, last, reached in zip(
            state.moves.first[moves].tolist(),
            state.moves.last[moves].tolist(),
            state.moves.coverage[moves].tolist(),
            strict=True,
        ):
            found[begin, last] = words_of(
                int(state.coverages.gap[reached]), int(state.coverages.mask[reached])
            )
        assert found == {
            (begin, last): covered | set(range(begin, last + 1))
            for begin in range(n)
            for last in range(begin, min(n, begin + task.parameters.longest))
            if options.number[begin * task.parameters.longest + last - begin]
            and not covered & set(range(begin, last + 1))
            and (limit < 0 or begin == gap or last + 1 - gap <= limit)
        }
        number += 1
    assert number == len({(int(state.coverages.gap[k]), int(state.coverages.mask[k])) for k in range(number)})
    assert number > (3 if limit == 0 else 10)


def test_no_room_is_told(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1))
    task = made.task(MarkedLine("a b c".split()), made.listing)
    for coverages, moves in ((2, 100), (100, 2)):
        state = allocate(StateSizes(10, 0, coverages, moves, 0, 3, 10, 0, 1, 0))
        room = np.zeros(1, np.int32)
        search.start_search(
            state, task.options, CompiledSearch(made.model.automata or ()).lms, task.parameters, room
        )
        assert not state.counters[FULL]
        find_moves(state, task.options, task.parameters, 0)
        assert state.counters[FULL]


# ---- test constraints --------------------------------------------------------------------------------------
# Walls and zones: the compiled rules are those of the plain search and of a naive reading; derivations keep
# to them.


@pytest.mark.ci
def test_compiled_is_plain() -> None:
    rng = random.Random(4)
    refused = 0
    for _ in range(4000):
        words = rng.randint(2, 12)
        ends = [(rng.randrange(words), rng.randrange(words)) for _ in range(rng.randint(0, 3))]
        zones = [(min(pair), max(pair)) for pair in ends]
        held = constraints(words, rng.sample(range(words), rng.randint(0, 2)), zones)
        begin = rng.randrange(words)
        last = rng.randint(begin, min(words - 1, begin + 3))
        translated = {word for word in range(words) if rng.random() < 0.4 and not begin <= word <= last}
        limit = rng.choice([-1, 0, 2, 6])
        node = plain.SearchNode(frozenset(translated), 0, 0, (), (), 0.0, 0.0)
        if not held.active:
            continue
        expected = plain.respects_constraints(node, begin, last, limit, held)
        assert bool(permits(held, *coverage(translated, words), begin, last, limit)) == expected
        refused += not expected
    assert 500 < refused < 3500


def orders(words: int, walls: list[int], zones: list[tuple[int, int]]) -> set[tuple[int, ...]]:
    """All orders of single words that the constraints allow."""
    held = constraints(words, walls, zones)
    found: set[tuple[int, ...]] = {()}
    for _ in range(words):
        found = {
            (*path, word)
            for path in found
            for word in range(words)
            if word not in path
            and (not held.active or permits(held, *coverage(set(path), words), word, word, -1))
        }
    return found


def test_walls_and_zones() -> None:
    """Words after a wall are translated after all words before it, the words of a zone one after the other; a
    wall inside a zone applies within the zone."""
    every = orders(5, [], [])
    assert len(every) == 120 and not constraints(0, (), ()).active
    assert orders(5, [1], []) == {path for path in every if {*path[:2]} == {0, 1}}
    assert orders(5, [], [(1, 3)]) == {
        path for path in every if max(map(path.index, (1, 2, 3))) - min(map(path.index, (1, 2, 3))) == 2
    }
    inside = {path for path in orders(5, [], [(1, 3)]) if path.index(1) < min(path.index(2), path.index(3))}
    assert orders(5, [1], [(1, 3)]) == inside


@pytest.mark.parametrize(
    ("walls", "zones", "local"),
    [
        ([1], [(0, 3)], [-1, 0, -1, -1]),
        ([3], [(0, 3)], [-1, -1, -1, -1]),  # behind the zone: of the whole line
        ([1], [(0, 3), (1, 2)], [-1, 1, -1, -1]),  # of the inner zone, whichever is named first
        ([1], [(1, 2), (0, 3)], [-1, 0, -1, -1]),
    ],
)
def test_walls_inside_zones(walls: list[int], zones: list[tuple[int, int]], local: list[int]) -> None:
    held = constraints(4, walls, zones)
    assert held.local.tolist() == local and held.wall.any() == (max(local) < 0)
