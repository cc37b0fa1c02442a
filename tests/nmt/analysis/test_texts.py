"""nmt-analyze ngram-counts and alignment-error."""

import random
from pathlib import Path

import pytest

from nmt.analysis.alignment_error import AlignmentScores, score_alignment
from nmt.formats.pharaoh import GoldLinks, parse, parse_gold
from tests.conftest import Command
from tests.nmt.analysis.conftest import Analyze

# ---- texts -------------------------------------------------------------------------------------------------


def test_ngram_counts(rows: Analyze, small: Path) -> None:
    (small / "train").write_text("a b a b\n\na b c\n")
    (small / "dev").write_text("a b d\n")
    found = rows("ngram-counts", "-i", "train", "--dev", "dev", "--order", 2, "-q")
    assert [list(row.values()) for row in found] == [
        ["1", "10", "4", "0.2500", "0.2500"],
        ["2", "10", "7", "0.7143", "0.5000"],
    ]
    assert rows("ngram-counts", "-i", "train", "--order", 3, "-q", "-o", "out")
    svg = (small / "out" / "ngram-counts.svg").read_text()
    assert "once, of the distinct" in svg and "new in the other text" not in svg


# ---- alignment error ---------------------------------------------------------------------------------------
# nmt-analyze alignment-error.


def test_alignment_error(rows: Analyze, small: Path, command: Command) -> None:
    (small / "gold").write_text("1-1 2-2 2?3\n\n")
    (small / "a").write_text("0-0 1-2 2-2\n\n")
    (small / "b").write_text("0-0 1-1\n\n")
    found = rows("alignment-error", "--gold", "gold", "--gold-from", 1, "--hypothesis", "a", "b", "-q")
    assert [list(row.values()) for row in found] == [
        ["a", "2", "3", "0.6667", "0.5000", "0.4000"],
        ["b", "2", "2", "1.0000", "1.0000", "0.0000"],
    ]
    (small / "c").write_text("0-0 1-1\n")
    for given, message in (
        (["--gold", "gold", "--hypothesis", "c"], "c: 1 lines, but gold has 2"),
        (["--gold", "a", "--hypothesis", "a", "--gold-from", 1], "a:1: '0-0' is not a point of a gold"),
        (["--gold", "gold", "--hypothesis", "gold"], "gold:1: '2?3' is not an alignment point"),
    ):
        done = command("nmt-analyze", "alignment-error", *given, cwd=small)
        assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1


def test_by_hand() -> None:
    """The example of a gold set with sure and possible links: |A| 3, |S| 2, |A ∩ S| 1, |A ∩ P| 2."""
    found = score_alignment([parse_gold("0-0 1-1 1?2", "")], [parse("0-0 1-2 2-2", "")])
    assert found == AlignmentScores(links=3, sure=2, sure_matches=1, possible_matches=2)
    assert (found.precision, found.recall) == (2 / 3, 1 / 2)
    assert found.error_rate == pytest.approx(1 - 3 / 5)


def test_relations() -> None:
    """The sure links have no errors, nor have all possible ones; without possible ones it is 1 - F; sentences
    are summed, not averaged."""
    rng = random.Random(1)
    gold, others = [], []
    for _ in range(20):
        links = frozenset((rng.randrange(6), rng.randrange(6)) for _ in range(8))
        sure = frozenset(link for link in links if rng.random() < 0.5)
        gold.append(GoldLinks(sure, links))
        others.append(frozenset((rng.randrange(6), rng.randrange(6)) for _ in range(5)))
    assert score_alignment(gold, [one.sure for one in gold]).error_rate == 0
    assert score_alignment(gold, [one.possible for one in gold]).error_rate == 0
    only = [GoldLinks(one.sure, one.sure) for one in gold]
    found = score_alignment(only, others)
    f1 = 2 * found.precision * found.recall / (found.precision + found.recall)
    assert found.error_rate == pytest.approx(1 - f1)
    halves = score_alignment(gold[:7], others[:7]), score_alignment(gold[7:], others[7:])
    whole = score_alignment(gold, others)
    assert vars(whole) == {key: sum(vars(half)[key] for half in halves) for key in vars(whole)}
    assert score_alignment([GoldLinks(frozenset(), frozenset())], [frozenset()]).error_rate == 0
