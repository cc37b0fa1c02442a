"""Affiliations by hand, and against the rules written word by word."""

from hypothesis import given
from hypothesis import strategies as st

from nmt.data.affiliation import (
    LONGEST,
    PHRASE,
    SENTENCE,
    affiliate_pair,
    affiliations,
    affiliations_by_phrase,
    fewest_phrases,
)
from nmt.formats.pharaoh import Links


def test_the_rules_of_the_paper() -> None:
    assert affiliations([(2, 0), (0, 1)], 3, 2) == [2, 0], "one link"
    assert affiliations([(1, 0), (4, 0), (5, 0)], 6, 1) == [4], "the middle one of three"
    assert affiliations([(1, 0), (3, 0), (4, 0), (5, 0)], 6, 1) == [3], "of four the second"
    assert affiliations([(5, 0), (1, 0)], 6, 1) == [1], "of two the first, in any order"
    assert affiliations([(3, 0), (1, 2)], 4, 3) == [3, 1, 1], "without links: of two neighbors the right one"
    assert affiliations([(3, 0), (1, 4)], 4, 6) == [3, 3, 1, 1, 1, 1], "the nearest, before and behind"
    assert affiliations([], 3, 3) == [0, 1, 2] and affiliations([], 2, 4) == [0, 0, 1, 1]
    assert affiliations([], 5, 1) == [2] and affiliations([], 0, 2) == [0, 0] and affiliations([], 3, 0) == []


def naive(links: set[tuple[int, int]], source: int, target: int) -> list[int]:
    def own(b: int) -> int | None:
        found = [a for a in range(source) if (a, b) in links]
        while len(found) > 2:
            found = found[1:-1]
        return found[0] if found else None

    result = []
    for b in range(target):
        candidates = [(own(place), place) for d in range(target + 1) for place in (b + d, b - d)]
        there = [a for a, place in candidates if 0 <= place < target and a is not None]
        result.append(there[0] if there else int((b + 0.5) * source / target))
    return result


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Links, int, int]:
    source, target = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    points = st.tuples(st.integers(0, source - 1), st.integers(0, target - 1))
    return draw(st.frozensets(points, max_size=12)), source, target


@given(pairs())
def test_affiliations_are_those_of_the_rules(pair: tuple[Links, int, int]) -> None:
    links, source, target = pair
    assert affiliations(links, source, target) == naive(set(links), source, target)
    assert affiliate_pair(links, source, target, SENTENCE) == naive(set(links), source, target)


@given(pairs())
def test_phrases_cover_the_target_and_cut_no_link(pair: tuple[Links, int, int]) -> None:
    links, source, target = pair
    phrases = fewest_phrases(links, source, target)
    if phrases:
        covered = [word for _, (begin, end) in phrases for word in range(begin, end + 1)]
        assert covered == list(range(target))
        for (first, last), (begin, end) in phrases:
            assert last - first < LONGEST and end - begin < LONGEST
            inside = [(first <= a <= last, begin <= b <= end) for a, b in links]
            assert any(map(all, inside)) and all(a == b for a, b in inside)
        found = affiliate_pair(links, source, target, PHRASE)
        assert found == affiliations_by_phrase(links, phrases, target)
        for b, place in enumerate(found):
            if any(word == b for _, word in links):
                assert place == affiliations(links, source, target)[b], "links lie inside a phrase"
    else:
        assert affiliate_pair(links, source, target, PHRASE) == affiliations(links, source, target)


def test_a_phrase_keeps_its_words_to_itself() -> None:
    """The word without links is nearer to one of another phrase."""
    assert affiliations([(0, 0), (3, 3)], 4, 4) == [0, 0, 3, 3]
    assert affiliations_by_phrase([(0, 0), (3, 3)], [((0, 1), (0, 2)), ((3, 3), (3, 3))], 4) == [0, 0, 0, 3]
    assert affiliations_by_phrase([(0, 0)], [((0, 0), (0, 0)), ((1, 2), (1, 2))], 3) == [0, 1, 2], (
        "a diagonal"
    )


def test_few_long_phrases_rather_than_many_short_ones() -> None:
    straight = frozenset((word, word) for word in range(9))
    assert sorted(end - begin + 1 for _, (begin, end) in fewest_phrases(straight, 9, 9)) == [2, 7]
    crossed = frozenset((8 - word, word) for word in range(9))
    assert len(fewest_phrases(crossed, 9, 9)) == 2
    assert fewest_phrases(frozenset([(0, 0), (8, 0)]), 9, 1) == [], "more words than a phrase may have"
