"""Coverages and what may be translated after each: bits = sets of words."""

import random
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.decoder import plain, search
from smt_bridge.decoder.arrays import COVERAGES, FULL, OptionArrays, StateSizes, allocate
from smt_bridge.decoder.coverage import after, covered_and_future, find_moves
from smt_bridge.decoder.xml_input import MarkedLine
from tests.smt_bridge.decoder.models import decoder, sentence, write_model


@pytest.mark.parametrize("limit", [3, -1])
def test_sentences_of_any_length(limit: int, tmp_path: Path) -> None:
    """150 words: more than one machine word of coverage. What is translated is every word once, in spans."""
    made = decoder(write_model(tmp_path, 4), stack=5, distortion_limit=limit)
    translation = made.translate_line(sentence(1, 150))
    part = translation.sentence
    assert part
    spans = sorted(
        (int(part.begin[option]), int(part.last[option])) for option in translation.derivations[0].options
    )
    assert [word for begin, last in spans for word in range(begin, last + 1)] == list(range(150))


def random_coverage(rng: random.Random, n: int) -> tuple[set[int], int, np.uint64]:
    """Some translated words, the first that is not, and the bits from there on."""
    covered = {word for word in range(n) if rng.random() < 0.5}
    gap = next(word for word in range(n + 1) if word not in covered)
    return covered, gap, np.uint64(sum(1 << (word - gap) for word in covered if word > gap))


def words_of(gap: int, mask: int) -> set[int]:
    return {*range(gap), *(gap + place for place in range(64) if mask >> place & 1)}


def test_bits_are_sets() -> None:
    """A coverage with a span added, the number of its words and its future cost: as sets of words have
    them."""
    rng, numbers = random.Random(2), np.random.default_rng(2)
    for _ in range(500):
        n = rng.randint(1, 20)
        covered, gap, mask = random_coverage(rng, n)
        future = numbers.normal(size=(n, n))
        count, cost = covered_and_future(gap, mask, future, n)
        expected = plain.future(OptionArrays(*[None] * 10, future, None), frozenset(covered), n)  # type: ignore[arg-type, call-arg]
        assert count == len(covered) and abs(cost - expected) < 1e-12
        begin, last = sorted((rng.randrange(n), rng.randrange(n)))
        if not covered & set(range(begin, last + 1)):
            found, bits = after(gap, mask, begin, last)
            both = covered | set(range(begin, last + 1))
            assert words_of(int(found), int(bits)) == both
            assert found not in both


@pytest.mark.parametrize("limit", [-1, 0, 2, 4])
def test_moves_are_the_free_spans(limit: int, tmp_path: Path) -> None:
    """Of every coverage that can be reached: the spans with options that are free and leave the first gap
    within reach, each with the coverage it leads to."""
    made = decoder(write_model(tmp_path, 1), distortion_limit=limit)
    task = made.task(MarkedLine("a zz b c a d".split()), made.listing)
    n, options = 6, task.options
    state = allocate(StateSizes(10, 0, 200, 2000, 0, n, 1, 0))
    search.start_search(state, options, made.model.automata or (), task.parameters)
    number = 0
    while number < state.counters[COVERAGES]:
        find_moves(state, options, task.parameters, number)
        covered, gap = words_of(int(state.gap[number]), int(state.mask[number])), int(state.gap[number])
        moves = slice(state.first_move[number], state.first_move[number] + state.moves[number])
        found = {}
        for begin, last, reached in zip(
            state.move_start[moves].tolist(),
            state.move_end[moves].tolist(),
            state.move_coverage[moves].tolist(),
            strict=True,
        ):
            found[begin, last] = words_of(int(state.gap[reached]), int(state.mask[reached]))
        assert found == {
            (begin, last): covered | set(range(begin, last + 1))
            for begin in range(n)
            for last in range(begin, min(n, begin + task.parameters.longest))
            if options.number[begin * task.parameters.longest + last - begin]
            and not covered & set(range(begin, last + 1))
            and (limit < 0 or begin == gap or last + 1 - gap <= limit)
        }
        number += 1
    assert number == len({(int(state.gap[k]), int(state.mask[k])) for k in range(number)})
    assert number > (3 if limit == 0 else 10)


def test_no_room_is_told(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1))
    task = made.task(MarkedLine("a b c".split()), made.listing)
    for coverages, moves in ((2, 100), (100, 2)):
        state = allocate(StateSizes(10, 0, coverages, moves, 0, 3, 1, 0))
        search.start_search(state, task.options, made.model.automata or (), task.parameters)
        assert not state.counters[FULL]
        find_moves(state, task.options, task.parameters, 0)
        assert state.counters[FULL]
