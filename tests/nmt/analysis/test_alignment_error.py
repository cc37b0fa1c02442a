"""The alignment error rate by its formula."""

import random

import pytest

from nmt.analysis.alignment_error import AlignmentScores, score_alignment
from nmt.formats.pharaoh import GoldLinks, parse, parse_gold


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
