"""Word alignments: read, written, of both directions; those of real programs found again."""

import random
from pathlib import Path

import pytest

from nmt.formats import pharaoh
from nmt.formats.pharaoh import Links
from smt_bridge.extraction import alignment
from smt_bridge.extraction.alignment import HEURISTICS
from tests.conftest import Command

# ---- test alignment ----------------------------------------------------------------------------------------


@pytest.mark.ci
def test_real_alignments_are_fast_aligns(nmt_data: Path, tmp_path: Path, command: Command) -> None:
    """fast_align and atools, the real programs, made the alignment that lies beside the corpus; ours differs
    in 5 of 29,000 lines."""
    corpus = nmt_data / "moses-multi30k"
    done = command(
        "smt-align",
        "-s",
        corpus / "corpus/train.tok.en",
        "-t",
        corpus / "corpus/train.tok.fr",
        "-o",
        tmp_path / "out",
    )
    assert done.returncode == 0, done.stderr
    ours, theirs = (
        list(pharaoh.read(tmp_path / "out")),
        list(pharaoh.read(corpus / "aligned.grow-diag-final-and.gz")),
    )
    assert len(ours) == len(theirs) == 29_000
    assert sum(a != b for a, b in zip(ours, theirs, strict=True)) <= 20


def random_links(rng: random.Random) -> Links:
    return frozenset((rng.randrange(12), rng.randrange(12)) for _ in range(rng.randrange(8)))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    rng = random.Random(1)
    links = [random_links(rng) for _ in range(50)]
    (tmp_path / "a").write_text("".join(f"{alignment.format_links(one)}\n" for one in links))
    assert list(pharaoh.read(tmp_path / "a")) == links
    assert alignment.swap_sides(alignment.swap_sides(links)) == links


def test_both_directions_have_the_source_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one is aligned the other way around."""

    class Corner:
        """The last word of the first text with the first word of the second."""

        def check(self) -> None:
            pass

        def align(self, sources: alignment.Texts, targets: alignment.Texts) -> list[Links]:
            return [frozenset([(len(source) - 1, 0)]) for source in sources]

    monkeypatch.setitem(alignment.ALIGNERS, "corner", Corner())
    found = alignment.align_both_directions([["a", "b", "c"]], [["x", "y"]], "corner")
    assert found == ([frozenset([(2, 0)])], [frozenset([(0, 1)])])
    assert alignment.symmetrize(*found, "union") == [frozenset([(2, 0), (0, 1)])]


# ---- test symmetrize ---------------------------------------------------------------------------------------
# Symmetrization by its rules.


def random_points(rng: random.Random, source: int, target: int, count: int) -> Links:
    return frozenset((rng.randrange(source), rng.randrange(target)) for _ in range(count))


def test_heuristics_lie_between_intersection_and_union() -> None:
    rng = random.Random(1)
    for _ in range(300):
        forward, reverse = (random_points(rng, 6, 7, rng.randrange(10)) for _ in range(2))
        made = {name: combine(forward, reverse) for name, combine in HEURISTICS.items()}
        assert made["intersection"] == forward & reverse and made["union"] == forward | reverse
        assert all(
            made["intersection"] <= links <= made["union"]
            for name, links in made.items()
            if name not in ("forward", "reverse")
        )
        assert (
            made["grow-diag"] <= made["grow-diag-final-and"] and made["grow-diag"] <= made["grow-diag-final"]
        )
        joined = {a for a, _ in made["grow-diag"]}, {b for _, b in made["grow-diag"]}
        added = made["grow-diag-final-and"] - made["grow-diag"]
        assert all(a not in joined[0] and b not in joined[1] for a, b in added)
        assert (made["forward"], made["reverse"]) == (forward, reverse)


def test_grow_diag_final_and_by_hand() -> None:
    """Intersection 0-0; 1-1 is a diagonal neighbor with a free word; 3-3 is joined by no neighbor and has two
    free words; 0-3 has one only."""
    forward, reverse = frozenset({(0, 0), (1, 1), (3, 3)}), frozenset({(0, 0), (0, 3)})
    assert HEURISTICS["grow-diag"](forward, reverse) == {(0, 0), (1, 1)}
    assert HEURISTICS["grow"](forward, reverse) == {(0, 0)}
    assert HEURISTICS["grow-diag-final-and"](forward, reverse) == {(0, 0), (1, 1), (3, 3)}
    assert HEURISTICS["grow-diag-final"](forward, reverse) == {(0, 0), (1, 1), (3, 3)}
    # One free word is enough for a neighbor, none is not: 1-0 joins, then 1-1 has a free target, and 0-1
    # nothing new.
    forward, reverse = frozenset({(0, 0), (1, 0), (1, 1), (0, 1)}), frozenset({(0, 0)})
    assert HEURISTICS["grow"](forward, reverse) == {(0, 0), (0, 1), (1, 0)}
