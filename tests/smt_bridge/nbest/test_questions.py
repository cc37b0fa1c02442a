"""What features are asked about n-best lists; affiliations of hypotheses by hand."""

import math

import numpy as np
import pytest

from nmt.data.affiliation import PHRASE, affiliate_pair, affiliations_by_phrase, fewest_phrases
from nmt.errors import DataError
from nmt.formats import nbest
from smt_bridge.features.base import PairFeature, Values, WordPairs
from smt_bridge.nbest.questions import Way, affiliation, ask, inverse_affiliation, sums, way_of
from smt_bridge.nbest.union import NbestSentence
from smt_bridge.tables.chunks import FLOOR
from tests.smt_bridge.nbest.lists import LIST, SOURCE


class Plain(PairFeature):
    def score(self, pairs: WordPairs) -> Values:
        raise NotImplementedError

    def identity(self) -> str:
        return ""


class Local(Plain):
    by_phrase = True


class Aligned(Plain):
    word_aligned = True


class Inverse(Aligned):
    inverse_aligned = True


def hypothesis(words: str, segments: str, points: str | None) -> nbest.Hypothesis:
    line = f"0 ||| {words} ||| F0= 1 ||| 0 ||| {segments}"
    return nbest.parse(line + (f" ||| {points}" if points is not None else ""), "list:1")


def chunk() -> list[NbestSentence]:
    entries = [nbest.parse(line, "list") for line in LIST.split("\n")[:-1]]
    return [
        NbestSentence(
            number, line.split(), own := [one for one in entries if one.sentence == number],
            [frozenset([0])] * len(own),
        )
        for number, line in enumerate(SOURCE.split("\n")[:-1])
    ]  # fmt: skip


def test_what_each_kind_of_feature_is_asked() -> None:
    for feature, by_phrase, way in (
        (Plain(), True, Way.SENTENCE),
        (Local(), True, Way.PHRASES),
        (Local(), False, Way.SENTENCE),
        (Aligned(), True, Way.ALIGNED),
        (Inverse(), True, Way.INVERSE_ALIGNED),
    ):
        assert way_of(feature, by_phrase) is way


def test_each_distinct_pair_once() -> None:
    twice = chunk()
    twice[0].hypotheses += [
        hypothesis("un chien", "0=0 1-2=1", "0-0 1-1"),
        hypothesis("un chien", "0=0 1-2=1", "0-0 2-1"),
    ]
    whole, parts, aligned, again = ask(twice, [Way.SENTENCE, Way.PHRASES, Way.ALIGNED, Way.SENTENCE], "list")
    assert again is whole and whole.pairs.affiliations is None and whole.pairs.whole
    assert whole.rows[:4] == [[0], [1], [1], [1]] and aligned.rows[:4] == [[0], [1], [1], [2]]
    assert aligned.pairs.affiliations == [[0, 1, 2], [0, 1], [0, 2], [], [0, 0, 2], [0, 2]]
    assert aligned.pairs.take([2, 0]).affiliations == [[0, 2], [0, 1, 2]]
    values = -np.arange(len(whole.pairs), dtype=np.float64)
    assert sums(whole, values, Way.SENTENCE).tolist()[:4] == [0, -1, -1, -1]
    floored = sums(parts, np.full(len(parts.pairs), -1e9), Way.PHRASES)
    assert floored[0] == 2 * math.log(FLOOR) and floored[4] == 0


def test_affiliations_are_those_of_the_search() -> None:
    """Phrase by phrase; a phrase without words has the place of the next one, or stands behind the end."""
    assert affiliation(hypothesis("x y z", "0-1=0-1 2=2", "1-0 2-2"), 3, "l") == [1, 1, 2]
    assert affiliation(hypothesis("x y", "2=0 0-1=1", ""), 3, "l") == [2, 1], "diagonals"
    assert affiliation(hypothesis("x y", "2=0 1=1 0=1", "2-0 0-1"), 3, "l") == [2, 0]
    assert affiliation(hypothesis("x", "0=0 1=1", "0-0"), 2, "l") == [0]
    assert affiliation(hypothesis("", "0=0", ""), 1, "l") == [] == affiliation(hypothesis("", "", ""), 0, "l")
    links = frozenset([(0, 0), (2, 1), (1, 3)])
    segments = " ".join(f"{a}-{b}={c}-{d}" for (a, b), (c, d) in fewest_phrases(links, 3, 4))
    points = " ".join(f"{a}-{b}" for a, b in links)
    assert affiliation(hypothesis("w x y z", segments, points), 3, "l") == affiliate_pair(links, 3, 4, PHRASE)


def test_affiliations_of_source_words_are_those_of_the_exchanged_pair() -> None:
    """Phrase by phrase; source words whose phrase has no words belong where the next phrase begins."""
    for words, segments, points, source, expected in (
        ("x y z", "0-1=0-1 2=2", "1-0 2-2", 3, [0, 0, 2]),
        ("x y", "2=0 0-1=1", "", 3, [1, 1, 0]),
        ("x y", "2=0 1=1 0=1", "2-0 0-1", 3, [1, 1, 0]),
        ("x", "0=0 1=1", "0-0", 2, [0, 1]),
        ("", "0=0", "", 1, [0]),
        ("", "", "", 0, []),
    ):
        assert inverse_affiliation(hypothesis(words, segments, points), source, "l") == expected
    links = frozenset([(0, 0), (2, 1), (1, 3)])
    found = fewest_phrases(links, 3, 4)
    segments = " ".join(f"{a}-{b}={c}-{d}" for (a, b), (c, d) in found)
    points = " ".join(f"{a}-{b}" for a, b in links)
    exchanged = affiliations_by_phrase([(b, a) for a, b in links], [(t, s) for s, t in found], 3)
    assert inverse_affiliation(hypothesis("w x y z", segments, points), 3, "l") == exchanged
    for words, segments in (("x", "0-1=0"), ("x y", "0=0 0-1=1"), ("x y", "1=0 2=1")):
        with pytest.raises(DataError, match=r"^l: .*does not cover each of 3 source words once"):
            inverse_affiliation(hypothesis(words, segments, ""), 3, "l")


@pytest.mark.parametrize(
    ("words", "segments", "points", "message"),
    [
        ("x", "0=0", None, "no alignment field .*print-alignment-info"),
        ("x", "", "0-0", "no segmentation field"),
        ("x y", "0=0", "0-0", "covers 1 of 2 words"),
        ("x y", "0=0 3=1", "0-0", "segmentation 3-3=1-1 does not fit"),
        ("x y", "0=1 1=0", "0-0", "segmentation 0-0=1-1 does not fit"),
        ("x", "0=0", "0-1", "point 0-1 is outside"),
    ],
)
def test_lists_that_do_not_say_it(words: str, segments: str, points: str | None, message: str) -> None:
    with pytest.raises(DataError, match=f"^l: .*{message}"):
        affiliation(hypothesis(words, segments, points), 2, "l")
