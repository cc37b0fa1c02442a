"""Class-based softmax: how words are put into classes, and one class or V classes is the flat softmax."""

import numpy as np
import pytest
import torch

from nmt.layers.output.classes import ClassSoftmax, at_random, by_frequency
from nmt.layers.output.softmax import Softmax
from tests.nmt.layers.output.layers import K, V, check_distribution, features, layer_of, zipf


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
