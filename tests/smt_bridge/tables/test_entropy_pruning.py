"""Pruning by relative entropy, against a recursion over all segmentations."""

import math
import random
from collections.abc import Iterator

import pytest

from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from smt_bridge.tables.entropy_pruning import TablePairs

Words = tuple[str, ...]
Key = tuple[Words, Words]


def row(source: Words, target: Words, p: float, count: int) -> PhrasePair:
    line = f"{' '.join(source)} ||| {' '.join(target)} ||| 0.5 0.5 {p:.17g} 0.5 ||| ||| 9 9 {count}"
    return phrase_table.parse(line.encode(), "table:1")


def kept(rows: list[PhrasePair], threshold: float) -> list[bool]:
    store = TablePairs()
    for block in rows[:3], rows[3:]:
        store.add(block, map(phrase_table.joint_count, block))
    return list(map(bool, store.keep(threshold)))


def segmentations(source: Words, target: Words) -> Iterator[list[Key]]:
    """All ways to cut both sides into the same number of parts, with one part too."""
    yield [(source, target)]
    for i in range(1, len(source)):
        for j in range(1, len(target)):
            for rest in segmentations(source[i:], target[j:]):
                yield [(source[:i], target[:j]), *rest]


def prune_naively(table: dict[Key, tuple[float, int]], threshold: float) -> set[Key]:
    """The pairs that stay, decided from short sources to long ones."""
    total = sum(count for _, count in table.values())
    stay = set(table)
    for source, target in sorted(table, key=lambda key: len(key[0])):
        p, count = table[source, target]
        composed = [
            sum(math.log(table[part][0]) for part in parts)
            for parts in segmentations(source, target)
            if len(parts) > 1 and all(part in stay for part in parts)
        ]
        if composed and count / total * (math.log(p) - max(composed)) < threshold:
            stay.discard((source, target))
    return stay


@pytest.mark.parametrize("threshold", [1e-9, 1e-4, 0.003, 1.0])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.ci
def test_equal_to_trying_all_segmentations(seed: int, threshold: float) -> None:
    rng = random.Random(seed)
    table: dict[Key, tuple[float, int]] = {}
    while len(table) < 250:
        source = tuple(rng.choice("ab") for _ in range(rng.randrange(1, 6)))
        target = tuple(rng.choice("bxy") for _ in range(rng.randrange(1, 6)))  # b is a word of both sides
        table[source, target] = rng.random() ** len(source), rng.randrange(1, 40)
    rows = [row(*key, *values) for key, values in table.items()]
    stay = prune_naively(table, threshold)
    assert kept(rows, threshold) == [key in stay for key in table]
    assert 0 < len(stay) < len(table)


def test_what_was_pruned_is_no_part() -> None:
    """'a b' goes, so 'a b c' is composed of three words, at a greater loss."""
    words = [row((word,), (word,), 0.9, 10) for word in "abc"]
    rows = [*words, row(("a", "b"), ("a", "b"), 0.82, 10), row(("a", "b", "c"), ("a", "b", "c"), 0.75, 10)]
    loss = 10 / 50 * math.log(0.82 / 0.81), 10 / 50 * math.log(0.75 / 0.729)
    assert loss[0] < 0.004 < loss[1] < 0.006
    assert kept(rows, 0.004) == [True, True, True, False, True]
    assert kept(rows, 0.006) == [True, True, True, False, False]


def test_pairs_in_another_order_are_not_composed() -> None:
    rows = [row(("a",), ("x",), 1, 1), row(("b",), ("y",), 1, 1), row(("a", "b"), ("y", "x"), 1, 1)]
    assert kept(rows, 1e9) == [True, True, True]
