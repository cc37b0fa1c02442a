"""Order and size of batches do not matter; words of tries are numbered with <s> first."""

import pytest
import torch

from nmt.data import prefix_tree
from nmt.layers.batch_scores import batches, level_words, word_scores
from nmt.models.config import RNNConfig
from nmt.models.rnn.translator import Translator
from nmt.text.vocab import BOS

PAIRS = [([3], [4, 5, 6]), ([4, 5], []), ([], [7]), ([6, 6, 6], [3, 3])]


def test_batches_have_every_pair_once_and_the_longest_first() -> None:
    found = list(batches(PAIRS, 3))
    assert found == [[0, 3, 2], [1]]


def test_the_size_of_a_batch_does_not_matter() -> None:
    torch.manual_seed(0)
    model = Translator(RNNConfig(embedding=4, hidden=5, maxout=3, init_scale=1.0), 7, 8).double().eval()
    whole = word_scores(model, PAIRS)
    assert [len(scores) for scores in whole] == [len(target) + 1 for _, target in PAIRS]
    for row, scores in enumerate(word_scores(model, PAIRS, 1)):
        assert scores == pytest.approx(whole[row], abs=1e-12)


def test_words_of_tries() -> None:
    levels = prefix_tree.levels([[5, 9], [5, 7], [9]])
    words, index = level_words(levels)
    assert words.tolist() == [BOS, 5, 7, 9]
    read = [BOS, *(int(token) for level in levels[1:] for token in level.token_ids)]
    assert words[index].tolist() == read
