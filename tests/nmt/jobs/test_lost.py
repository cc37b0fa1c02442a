"""The lines of lost chunks, in one line."""

import pytest

from nmt.errors import UserError
from nmt.jobs.lost import SHOWN, Lost, LostLines, all_of

LOST = Lost("three workers died while they computed them")


def test_nothing_is_lost() -> None:
    LostLines().check("text", "start again")


def test_neighboring_chunks_are_one_range() -> None:
    lines = LostLines()
    for first, last in ((1, 10), (11, 20), (1001, 2000), (3000, 3000)):
        lines.add(first, last, LOST)
    with pytest.raises(UserError) as raised:
        lines.check("text", "start again")
    assert str(raised.value) == (
        "text: lines 1-20, 1,001-2,000, 3,000: three workers died while they computed them; start again"
    )


def test_a_long_list_is_cut() -> None:
    lines = LostLines()
    for number in range(SHOWN + 2):
        lines.add(10 * number + 1, 10 * number + 5, LOST)
    with pytest.raises(UserError, match=r"91-95 and 2 more ranges: three workers"):
        lines.check("text", "start again")


def test_who_needs_all_results_stops_at_the_first_lost_one() -> None:
    results = all_of([1, 2, LOST, 4])
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(UserError, match="chunk 3 of the job: three workers died while they computed them"):
        next(results)
