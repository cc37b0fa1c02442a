"""Word classes by exchange: gains are differences of the objective, which never falls; planted classes are
recovered; compiled moves are the plain ones."""

import numpy as np
import pytest

from nmt.compute.compiled import HAVE_NUMBA
from nmt.lazy import LazyPart
from nmt.ngram import exchange
from nmt.ngram.exchange import Bigrams, Exchange, cluster
from nmt.ngram.text_scorer import Ints


def text_of_classes(seed: int = 0, size: int = 6000) -> Ints:
    """Words 0-4, 5-9, 10-14: a word of one class is followed by one of the next."""
    rng = np.random.default_rng(seed)
    return (np.arange(size) % 3) * 5 + rng.integers(0, 5, size)


def random_text(seed: int, words: int, size: int) -> Ints:
    """With a word that often follows itself."""
    text = np.minimum(np.random.default_rng(seed).geometric(0.1, size), words) - 1
    text[::7] = text[1::7] = 3
    return text


def naive_objective(text: Ints, classes: Ints) -> float:
    """Σ log p(class | class before) p(word | class) by relative frequencies, except for what does not depend
    on the classes."""
    first, second = classes[text[:-1]].tolist(), classes[text[1:]].tolist()
    pairs = list(zip(first, second, strict=True))
    return float(sum(np.log(pairs.count(p) / first.count(p[0]) / second.count(p[1])) for p in pairs))


@pytest.mark.parametrize("closed", [0, 2])
def test_gains_are_differences_of_the_objective(closed: int) -> None:
    """By its definition; also for a word that follows itself."""
    text = random_text(1, 12, 300)
    classes = np.append(np.random.default_rng(1).permutation(np.arange(10) % 3), [3, 4])
    bigrams = Bigrams.of(text, 12)
    work = Exchange(bigrams, classes, 5, closed)
    assert work.objective() == pytest.approx(naive_objective(text, classes))
    for word in (0, 3, 5):
        work = Exchange(bigrams, classes, 5, closed)
        beside = work.beside(word)
        work.put(word, int(classes[word]), *beside, -1)
        values = []
        for index in range(5 - closed):
            changed = classes.copy()
            changed[word] = index
            values.append(naive_objective(text, changed))
        gains = work.gains(word, *beside)
        assert len(gains) == 5 - closed
        assert gains - gains[0] == pytest.approx(np.array(values) - values[0])


def test_the_objective_never_falls() -> None:
    bigrams = Bigrams.of(text_of_classes(), 15)
    work = Exchange(bigrams, np.arange(15) % 3, 3)
    values = [work.objective()]
    for word in range(15):
        work.move(word)
        values.append(work.objective())
        assert Exchange(bigrams, work.classes, 3).objective() == pytest.approx(values[-1])  # counts kept up
    assert (np.diff(values) >= -1e-6).all() and values[-1] > values[0]


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
@pytest.mark.parametrize("closed", [0, 2])
def test_compiled_moves_are_the_plain_ones(closed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Round by round, for words that come in several blocks; words of closed classes stay in them."""
    monkeypatch.setattr(exchange, "BLOCK", 17)
    bigrams = Bigrams.of(random_text(2, 60, 3000), 60)
    start = np.arange(60) % 6
    plain, compiled = (Exchange(bigrams, start, 6, closed) for _ in range(2))
    order = np.flatnonzero(start < 6 - closed)
    for _ in range(3):
        moved = sum(plain.move(word) for word in order.tolist())
        assert compiled.move_all(order) == moved
        np.testing.assert_array_equal(compiled.classes, plain.classes)
        for ours, theirs in zip(compiled.totals, plain.totals, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert compiled.objective() > Exchange(bigrams, start, 6).objective()
    assert (compiled.classes[start >= 6 - closed] == start[start >= 6 - closed]).all()


@pytest.mark.parametrize("compiled", [False, True])
def test_planted_classes_are_recovered(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(exchange, "COMPILED_MOVES", LazyPart("nmt.ngram.text_scorer:UNK"))
    classes = cluster(Bigrams.of(text_of_classes(), 15), np.arange(15) % 3, 3)
    assert all(len(set(classes[start : start + 5])) == 1 for start in (0, 5, 10))
    assert len(set(classes[[0, 5, 10]])) == 3


def test_no_class_loses_its_last_word_and_unseen_words_stay() -> None:
    rng = np.random.default_rng(0)
    text, start = rng.integers(0, 10, 500), np.arange(20) % 7
    classes = cluster(Bigrams.of(text, 20), start, 7)
    assert (np.bincount(classes, minlength=7) > 0).all()
    assert np.array_equal(classes[10:], start[10:])


def test_a_text_of_one_word() -> None:
    assert cluster(Bigrams.of(np.array([3]), 5), np.arange(5) % 2, 2).tolist() == [0, 1, 0, 1, 0]
