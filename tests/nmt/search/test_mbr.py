"""Minimum Bayes risk: gains are sacreBLEU's, the choice is that of plain loops, and limits are what they must
be."""

import math
import random
from dataclasses import fields

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.config import settings
from nmt.search import mbr
from nmt.search.config import MBRConfig
from nmt.search.mbr import GAINS, choose, evidence

SACREBLEU = {"bleu": BLEU(tokenize="none", effective_order=True), "chrf": CHRF()}
WORDS = ["a", "bb", "c'", "déjà", "𝒳", "a", "bb"]
Lists = list[list[tuple[str, float]]]


def gain(metric: str, line: str, reference: str) -> float:
    """sacreBLEU's score of a sentence; equal lines are worth 100 even if they are empty."""
    return 100.0 if line == reference else SACREBLEU[metric].sentence_score(line, [reference]).score


def random_lists(seed: int, lists: int = 1, size: int = 8) -> Lists:
    rng = random.Random(seed)

    def text() -> str:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 9)))

    pool = [text() for _ in range(size)]
    return [[(rng.choice(pool), rng.uniform(-9, 0)) for _ in range(size)] for _ in range(lists)]


def chosen(metric: str, lists: Lists, *scales: float) -> str:
    found = evidence(lists)
    return found.texts[choose(found, metric, [scales])[0]]


def naive(metric: str, lists: Lists, *scales: float) -> str:
    """The definition, text by text."""
    mass: dict[str, float] = {}
    for entries, scale in zip(lists, scales, strict=True):
        total = sum(math.exp(scale * score) for _, score in entries)
        for text, score in entries:
            mass[text] = mass.get(text, 0.0) + math.exp(scale * score) / total
    expected = {text: sum(p * gain(metric, text, other) for other, p in mass.items()) for text in mass}
    return max(expected, key=lambda text: expected[text])


@pytest.mark.parametrize("metric", GAINS)
def test_gains_are_sacrebleus_sentence_scores(metric: str) -> None:
    for seed in range(40):
        texts = list(dict.fromkeys(text for text, _ in random_lists(seed)[0]))
        expected = [[gain(metric, line, reference) for reference in texts] for line in texts]
        np.testing.assert_allclose(GAINS[metric](texts), expected, atol=1e-9)
    blank = ["", "a", "a\u00a0b a", "\u3000"]  # what sacreBLEU takes for blanks
    expected = [[gain(metric, line, reference) for reference in blank] for line in blank]
    np.testing.assert_allclose(GAINS[metric](blank)[:3, :3], np.array(expected)[:3, :3], atol=1e-9)


@pytest.mark.parametrize("metric", GAINS)
@pytest.mark.parametrize("lists", [1, 2])
def test_the_choice_is_that_of_plain_loops(metric: str, lists: int) -> None:
    scales = (0.5, 2.0)[:lists]
    for seed in range(40):
        given = random_lists(seed, lists)
        assert chosen(metric, given, *scales) == naive(metric, given, *scales)


@pytest.mark.parametrize("metric", GAINS)
def test_a_large_scale_leaves_the_best_of_the_list(metric: str) -> None:
    for seed in range(20):
        (entries,) = given = random_lists(seed)
        best = max(entries, key=lambda entry: entry[1])[0]
        assert chosen(metric, given, 1e6) == best == chosen(metric, given, 1e300)
    given = random_lists(0)
    assert chosen(metric, given, 0) != chosen(metric, given, 9)


@pytest.mark.parametrize("metric", GAINS)
def test_a_single_text_is_chosen(metric: str) -> None:
    assert chosen(metric, [[("x y", -3.0)]], 1) == "x y"
    assert chosen(metric, [[("", -3.0), ("", -4.0)], []], 1, 2) == ""
    assert chosen(metric, [[("", -0.1), ("z", -4.0)]], 1) == ""  # nothing is a translation too


@pytest.mark.parametrize("metric", GAINS)
def test_texts_of_probability_zero_count_alike(metric: str) -> None:
    """What a search returns for constraints that cannot be met."""
    assert chosen(metric, [[("", -math.inf)]], 1.0) == ""
    alike = [[("a b c", value), ("b c", value), ("x", value)] for value in (-math.inf, 0.0)]
    assert chosen(metric, alike[:1], 1.0) == chosen(metric, alike[1:], 1.0)


def test_equal_lines_add_up() -> None:
    """Two derivations of a text count as one with the sum of their p."""
    once = [[("a b c d", math.log(0.4)), ("p q r s", math.log(0.6))]]
    twice = [[("a b c d", math.log(0.4)), ("a b c d", math.log(0.4)), ("p q r s", math.log(0.6))]]
    summed = [[("a b c d", math.log(0.8)), ("p q r s", math.log(0.6))]]
    assert chosen("bleu", once, 1) == "p q r s"
    assert chosen("bleu", twice, 1) == chosen("bleu", summed, 1) == "a b c d"
    np.testing.assert_allclose(
        np.sort(evidence(twice).posterior([1])), np.sort(evidence(summed).posterior([1]))
    )


@pytest.mark.parametrize("metric", GAINS)
def test_order_changes_nothing(metric: str) -> None:
    """Neither that of the entries nor that of the lists."""
    for seed in range(20):
        given, rng = random_lists(seed, 3), random.Random(seed)
        found = chosen(metric, given, 0.3, 1, 2)
        mixed = [rng.sample(entries, len(entries)) for entries in given]
        assert chosen(metric, mixed, 0.3, 1, 2) == found
        assert chosen(metric, mixed[::-1], 2, 1, 0.3) == found


def test_each_list_is_normalized_by_itself() -> None:
    """A system whose totals are larger, or in other units, counts no more than another."""
    for seed in range(20):
        one, other = random_lists(seed, 2)
        shifted = [(text, 7 * score - 900) for text, score in other]
        assert chosen("bleu", [one, other], 1, 1) == chosen("bleu", [one, shifted], 1, 1 / 7)
    found = evidence([[("x", math.log(0.3)), ("y", math.log(0.1))], [], [("y", 80.0)]])
    assert found.texts == ["y", "x"]
    np.testing.assert_allclose(found.posterior([1, 1, 1]), [(0.25 + 1) / 2, 0.75 / 2])


def test_ties() -> None:
    """Of equal gains the more probable text, then the better score, then the first."""
    assert chosen("bleu", [[("p", -2.0), ("q", -1.0)]], 0) == "q"
    assert chosen("bleu", [[("p", -1.0), ("q", -1.0)]], 0) == "p"
    equal = np.full((2, 2), 50.0)
    assert mbr.best_texts(equal, np.array([[0.4, 0.5], [0.6, 0.5]])).tolist() == [1, 0]


def test_any_numbers() -> None:
    """Scores and scales of any size, without a warning."""
    found = evidence([[("a", -1e308), ("b", 1e308), ("b c", 0.0)]])
    with np.errstate(all="raise", under="ignore"):
        assert choose(found, "chrf", [(0.0,), (1.0,), (1e300,)]) == [1, 0, 0]
    assert found.texts == ["b", "b c", "a"]


def test_many_scales_at_once() -> None:
    for seed in range(10):
        found = evidence(random_lists(seed, 2))
        scales = [(0.1, 3.0), (1.0, 1.0), (5.0, 0.0)]
        assert choose(found, "chrf", scales) == [choose(found, "chrf", [row])[0] for row in scales]


def test_the_option_has_the_metrics() -> None:
    (item,) = (item for item in fields(MBRConfig) if item.name == "mbr")
    assert item.metadata[settings.ALLOWED] == tuple(GAINS)
