"""Links between words as shares of attention between units, and where they are in a packed batch."""

import random
from fractions import Fraction

import torch

from nmt.data.batches import make_batch
from nmt.data.guidance import guidance, unit_links


def shares(
    links: set[tuple[int, int]], source: list[int], target: list[int]
) -> dict[int, dict[int, Fraction]]:
    """What each target unit should look at, and how much."""
    found: dict[int, dict[int, Fraction]] = {}
    for unit, place, parts in unit_links(frozenset(links), source, target).tolist():
        found.setdefault(unit, {})[place] = Fraction(1, parts)
    return found


def test_all_units_of_a_linked_word_share_its_mass() -> None:
    third, half, quarter = Fraction(1, 3), Fraction(1, 2), Fraction(1, 4)
    # le chi@@ en - the do@@ g
    assert shares({(0, 0), (1, 1)}, [0, 1, 1], [0, 1, 1]) == {
        0: {0: 1},
        1: {1: half, 2: half},
        2: {1: half, 2: half},
    }
    # A word of two linked words: half each, whatever their units.
    assert shares({(0, 0), (1, 0)}, [0, 1, 1], [0]) == {0: {0: half, 1: quarter, 2: quarter}}
    assert shares({(0, 0)}, [0, 0, 0], [0, 1]) == {0: {0: third, 1: third, 2: third}}
    assert shares(set(), [0, 1], [0, 1]) == {}


def test_shares_of_a_unit_sum_to_one() -> None:
    rng = random.Random(3)
    for _ in range(50):
        source = [word for word in range(5) for _ in range(rng.randint(1, 3))]
        target = [word for word in range(4) for _ in range(rng.randint(1, 3))]
        links = {(rng.randrange(5), rng.randrange(4)) for _ in range(rng.randint(0, 6))}
        found = shares(links, source, target)
        assert all(sum(row.values()) == 1 for row in found.values())
        assert {target[unit] for unit in found} == {other for _, other in links}


def test_links_find_their_tokens_in_a_packed_batch() -> None:
    """The token of a link has the id that stands at its place in the sentence."""
    sources, targets = [[3], [4, 5, 6], [7, 8]], [[10, 11], [12], [13, 14, 15, 16]]
    links = [
        unit_links(frozenset({(0, 1)}), [0], [0, 1]),
        unit_links(frozenset(), [0, 1, 2], [0]),
        unit_links(frozenset({(1, 3), (0, 0), (1, 0)}), [0, 1], [0, 1, 2, 3]),
    ]
    batch = make_batch(sources, targets)
    found = guidance(links, batch.target.sizes, batch.target.order.tolist(), 0.5)
    rows = batch.target.ids[found.tokens].tolist(), found.positions.tolist(), found.shares.tolist()
    assert sorted(zip(*rows, strict=True)) == [(11, 0, 0.5), (13, 0, 0.25), (13, 1, 0.25), (16, 1, 0.5)]
    nothing = guidance([links[1]], [2], [0], 1.0)
    assert nothing.tokens.shape == nothing.shares.shape == (0,)
    assert torch.equal(found.to("cpu").tokens, found.tokens)
