"""Word classes by exchange: gains are differences of the objective, which never falls; planted classes are
found."""

import numpy as np
import pytest

from nmt.layers.output.clusters import Exchange, cluster


def text_of_classes(seed: int = 0, size: int = 6000) -> np.ndarray:
    """Words 0-4, 5-9, 10-14: a word of one class is followed by one of the next."""
    rng = np.random.default_rng(seed)
    return (np.arange(size) % 3) * 5 + rng.integers(0, 5, size)


def test_gains_are_differences_of_the_objective() -> None:
    """Also for a word that follows itself."""
    rng = np.random.default_rng(1)
    text = rng.integers(0, 8, 300)
    text[::7] = 3
    classes = rng.permutation(np.arange(8) % 3)
    work = Exchange(text, classes, 3)
    after, before = (side.of(3, work.classes, 3) for side in (work.after, work.before))
    work.put(3, int(classes[3]), after, before, -1)
    gains = work.gains(3, after, before)
    found = []
    for place in range(3):
        changed = classes.copy()
        changed[3] = place
        found.append(Exchange(text, changed, 3).objective())
    assert gains - gains[0] == pytest.approx(np.array(found) - found[0])


def test_the_objective_never_falls() -> None:
    text = text_of_classes()
    work = Exchange(text, np.arange(15) % 3, 3)
    values = [work.objective()]
    for word in range(15):
        work.move(word)
        values.append(work.objective())
        assert Exchange(text, work.classes, 3).objective() == pytest.approx(values[-1])  # counts kept up
    assert (np.diff(values) >= -1e-6).all() and values[-1] > values[0]


def test_planted_classes_are_found() -> None:
    found = cluster(text_of_classes(), np.arange(15) % 3, 3)
    assert all(len(set(found[start : start + 5])) == 1 for start in (0, 5, 10))
    assert len(set(found[[0, 5, 10]])) == 3


def test_no_class_loses_its_last_word_and_unseen_words_stay() -> None:
    rng = np.random.default_rng(0)
    text, start = rng.integers(0, 10, 500), np.arange(20) % 7
    found = cluster(text, start, 7)
    assert (np.bincount(found, minlength=7) > 0).all()
    assert np.array_equal(found[10:], start[10:])


def test_a_text_of_one_word() -> None:
    assert cluster(np.array([3]), np.arange(5) % 2, 2).tolist() == [0, 1, 0, 1, 0]
