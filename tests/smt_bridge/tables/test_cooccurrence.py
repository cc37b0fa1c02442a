"""Counts of phrase pairs over sentence pairs, against lists of words; significance, against exact sums."""

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.formats.phrase_table import PhrasePair
from smt_bridge.tables import cooccurrence
from smt_bridge.tables.cooccurrence import DEPTH, Cooccurrences, significance, significances, sort_suffixes

Lines = list[list[str]]


def random_lines(rng: random.Random, number: int, words: Sequence[str]) -> Lines:
    """Lines with repeated phrases, some of them empty or equal, or equal but for their last word."""
    lines = [[rng.choice(words) for _ in range(rng.randrange(14))] for _ in range(number)]
    copies = [rng.choice(lines[: number // 2]) for _ in lines[number // 2 :]]
    return lines[: number // 2] + [[*line[:-1], rng.choice(words)] for line in copies]


def write(path: Path, lines: Lines) -> str:
    path.write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def contains(line: Sequence[str], phrase: Sequence[str]) -> bool:
    return any(line[at : at + len(phrase)] == phrase for at in range(len(line)))


def count_naively(sources: Lines, targets: Lines, pair: tuple[list[str], list[str]]) -> list[int]:
    """Sentence pairs with the source phrase, the target phrase, and both."""
    in_source, in_target = (
        [contains(line, phrase) for line in lines]
        for lines, phrase in zip((sources, targets), pair, strict=True)
    )
    both = [a and b for a, b in zip(in_source, in_target, strict=True)]
    return [sum(in_source), sum(in_target), sum(both)]


def make_pair(source: Sequence[str], target: Sequence[str]) -> PhrasePair:
    return PhrasePair(" ".join(source).encode(), " ".join(target).encode(), b"1", b"", 0)


@pytest.mark.parametrize("frequent", [1, 5, 256])
@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_reading_every_line(
    seed: int, frequent: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of phrases longer than suffixes are sorted by, with unknown words, and in several blocks."""
    monkeypatch.setattr(cooccurrence, "FREQUENT", frequent)
    rng = random.Random(seed)
    sources, targets = (random_lines(rng, 60, words) for words in (["a", "b", "c"], ["x", "xx", "é", "y"]))
    counts = Cooccurrences(write(tmp_path / "s", sources), write(tmp_path / "t", targets))
    assert counts.pairs == 60

    def phrase(lines: Lines) -> list[str]:
        line = rng.choice([line for line in lines if line])
        start = rng.randrange(len(line))
        return line[start : start + rng.randrange(1, 12)] if rng.random() < 0.9 else ["a", "unknown"]

    pairs = [(phrase(sources), phrase(targets)) for _ in range(400)]
    pairs.sort()
    assert any(len(source) > DEPTH for source, _ in pairs) and any(len(target) > DEPTH for _, target in pairs)
    rows = [make_pair(*pair) for pair in pairs]
    blocks = [counts.count(rows[at : at + 130]) for at in range(0, len(rows), 130)]
    expected = [count_naively(sources, targets, pair) for pair in pairs]
    assert np.concatenate(blocks).tolist() == expected
    assert bool(counts.frequent) == (frequent < 256)


@pytest.mark.parametrize("seed", range(4))
def test_suffixes_are_sorted(seed: int) -> None:
    text = np.random.default_rng(seed).integers(0, 3, 200 * (seed + 1) % 700 + 1).astype(np.int32)
    order = sort_suffixes(text)
    assert sorted(order.tolist()) == list(range(len(text)))
    keys = [tuple(text[at : at + DEPTH]) for at in order]
    assert keys == sorted(keys)


def exact(joint: int, source: int, target: int, pairs: int) -> Fraction:
    """p of Fisher's exact test as a sum of hypergeometric terms."""
    ways = sum(
        math.comb(source, k) * math.comb(pairs - source, target - k)
        for k in range(joint, min(source, target) + 1)
        if target - k <= pairs - source
    )
    return Fraction(ways, math.comb(pairs, target))


def natural_log(value: Fraction) -> float:
    """ln of a fraction that may be too small for a float."""
    shift = value.denominator.bit_length() - value.numerator.bit_length()
    return math.log(value * Fraction(2) ** shift) - shift * math.log(2)


def test_significance_is_exact_for_all_small_counts() -> None:
    for pairs in range(1, 9):
        for source in range(pairs + 1):
            for target in range(pairs + 1):
                for joint in range(max(0, source + target - pairs), min(source, target) + 1):
                    p = exact(joint, source, target, pairs)
                    value = significance(joint, source, target, pairs)
                    assert value == pytest.approx(-natural_log(p), abs=1e-12), (joint, source, target, pairs)


@pytest.mark.parametrize(
    "counts",
    [
        (1, 1, 1, 29_000), (2, 2, 2, 2_000_000), (3, 5, 700, 29_000), (40, 60, 50, 29_000),
        (900, 1_000, 1_100, 3_000), (100, 1_000, 1_100, 11_000), (101, 1_000, 1_100, 11_000),
        (5, 1_000, 1_100, 11_000), (1, 1, 29_000, 29_000), (0, 5, 5, 100),
    ],
)  # fmt: skip
def test_significance_is_that_of_exact_sums(counts: tuple[int, int, int, int]) -> None:
    """Far above the mean, around it, and below it."""
    expected = -natural_log(exact(*counts))
    assert significance(*counts) == pytest.approx(expected, rel=1e-7, abs=1e-12)


@pytest.mark.ci
def test_significance_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(1)
    pairs = 2_000_000
    source, target = (np.exp(rng.uniform(0, np.log(pairs / 3), 300)).astype(np.int64) for _ in range(2))
    joint = (np.minimum(source, target) * rng.random(300) ** 3).astype(np.int64)
    ours = significances(np.stack([source, target, joint], 1), pairs)
    theirs = -stats.hypergeom.logsf(joint - 1, pairs, source, target)
    sound = theirs < 1e4  # beyond it, scipy adds thousands of terms of no weight with less precision
    assert sound.sum() > 100 and np.allclose(ours[sound], theirs[sound], rtol=1e-6, atol=1e-6)


def test_alpha_is_the_significance_of_a_pair_that_occurs_once() -> None:
    for pairs in (7, 29_000, 2_000_000, 40_000_000):
        assert significance(1, 1, 1, pairs) == pytest.approx(math.log(pairs), abs=1e-6)


def test_texts_that_are_not_parallel_or_empty(tmp_path: Path) -> None:
    one, two, none = (write(tmp_path / name, [["a"]] * n) for name, n in (("1", 1), ("2", 2), ("0", 0)))
    with pytest.raises(DataError, match=r"1 line, but .* has 2"):
        Cooccurrences(one, two)
    with pytest.raises(DataError, match="no words"):
        Cooccurrences(none, none)
