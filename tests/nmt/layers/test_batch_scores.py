"""Order and size of batches do not matter; words of tries are numbered with <s> first."""

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.data import prefix_tree
from nmt.layers.batch_scores import (
    batches_by_length,
    distinct_windows,
    level_words,
    window_scores,
    word_scores,
)
from nmt.layers.output.softmax import Softmax
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.text.vocab import BOS

CPU = torch.device("cpu")

# ---- batch scores ------------------------------------------------------------------------------------------


PAIRS = [([3], [4, 5, 6]), ([4, 5], []), ([], [7]), ([6, 6, 6], [3, 3])]


def test_batches_have_every_pair_once_and_the_longest_first() -> None:
    found = list(batches_by_length(PAIRS, 3))
    assert found == [[0, 3, 2], [1]]


def test_the_size_of_a_batch_does_not_matter() -> None:
    torch.manual_seed(0)
    model = RNNTranslator(RNNConfig(embedding=4, hidden=5, maxout=3, init_scale=1.0), 7, 8).double().eval()
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


# ---- distinct windows --------------------------------------------------------------------------------------
# Each distinct window is computed once, and answers all who ask.


def test_distinct_rows() -> None:
    rng = np.random.default_rng(1)
    for shape, largest in (((0, 3), 4), ((1, 1), 4), ((500, 3), 4), ((500, 9), 1), ((500, 6), 1 << 40)):
        rows = rng.choice([0, 1, largest // 2, largest], shape)  # 1 << 40: several do not fit into a number
        unique, index = (part.numpy() for part in distinct_windows(torch.from_numpy(rows)))
        assert (unique[index] == rows).all()
        assert np.unique(rows, axis=0).tolist() == unique.tolist(), "sorted, each once"


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("rows", [2, 512])
def test_scores_are_those_of_each_window(
    normalized: bool, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.layers.batch_scores.WINDOW_ROWS", rows)
    torch.manual_seed(0)
    windows, output = torch.randn(7, 4).double(), Softmax(4, 6).double().eval()
    torch.nn.init.normal_(output.words)
    index = np.array([3, 0, 6, 1, 1, 2, 4, 5, 3])
    words = np.array([5, 1, 0, 2, 3, 4, 0, 1, 2])
    asked: list[int] = []

    def features(start: int, stop: int) -> Tensor:
        asked.extend(range(start, stop))
        return windows[start:stop]

    found = window_scores(output, features, len(windows), torch.from_numpy(index), words, normalized)
    scores = output.scores(windows) if normalized else output.log_probs(windows)
    assert found.tolist() == pytest.approx(scores.detach().numpy()[index, words].tolist(), abs=1e-12)
    assert asked == list(range(7)), "each once"
    none = np.zeros(0, np.int64)
    assert window_scores(output, features, 0, torch.from_numpy(none), none, normalized).tolist() == []
