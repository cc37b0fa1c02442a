"""Class-based softmax: how words are put into classes, and one class or V classes is the flat softmax."""

import numpy as np
import pytest
import torch

from nmt.layers.output.classes import ClassSoftmax, Exchange, at_random, by_frequency, cluster
from nmt.layers.output.softmax import Softmax
from tests.nmt.layers.output.layers import K, V, check_distribution, features, layer_of, zipf

# ---- test classes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, V])
def test_one_class_or_as_many_as_words_is_the_flat_softmax(count: int) -> None:
    layer = layer_of(output="classes", output_class_count=count)
    assert isinstance(layer, ClassSoftmax) and layer.rows_bias is not None
    flat = Softmax(K, V).double().eval()
    assert flat.words_bias is not None
    # of V classes each has one word, of probability 1, so the rows that matter are those of the classes
    rows = layer.leaf if count == 1 else layer.above[layer.node[layer.leaf]]
    with torch.no_grad():
        flat.words.copy_(layer.rows[rows])
        flat.words_bias.copy_(layer.rows_bias[rows])
    assert torch.allclose(layer.log_probs(features()), flat.log_probs(features()), atol=1e-12)


def test_classes_by_frequency_are_about_equally_likely() -> None:
    text = zipf(1000, 20000)
    counts = np.bincount(text, minlength=1000)
    classes = by_frequency(text, counts, 10)
    mass = np.bincount(classes, counts, minlength=10) / len(text)
    assert classes[1] == 0 and mass[0] < 0.14  # the most frequent word has a class of its own
    assert (mass > 0.05).all() and (mass[2:] < 0.13).all()
    order = np.argsort(-counts, kind="stable")
    assert (np.diff(classes[order]) >= 0).all()


def test_every_class_has_a_word_even_where_one_word_is_nearly_all_of_the_text() -> None:
    counts = np.array([1000, 1, 0, 0, 1, 0])
    for count in (1, 2, 4, 6):
        assert (np.bincount(by_frequency(np.zeros(0, int), counts, count), minlength=count) > 0).all()


def test_random_classes_are_equally_large_and_always_the_same() -> None:
    classes = at_random(np.zeros(0, int), np.zeros(100, int), 10)
    assert (np.bincount(classes) == 10).all() and not np.array_equal(classes, np.sort(classes))
    assert np.array_equal(classes, at_random(np.zeros(0, int), np.zeros(100, int), 10))


def test_the_default_is_the_square_root_of_the_vocabulary() -> None:
    layer = layer_of(words=100, output="classes")
    assert isinstance(layer, ClassSoftmax) and layer.count == 10
    check_distribution(layer, features(4), 100)


def test_a_vocabulary_smaller_than_the_number_of_classes() -> None:
    layer = layer_of(output="classes", output_class_count=50)
    assert isinstance(layer, ClassSoftmax) and layer.count == V


# ---- test clusters -----------------------------------------------------------------------------------------
# Word classes by exchange: gains are differences of the objective, which never falls; planted classes are
# found.


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
    following, preceding = (side.of(3, work.classes, 3) for side in (work.following, work.preceding))
    work.put(3, int(classes[3]), following, preceding, -1)
    gains = work.gains(3, following, preceding)
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
