"""Each distinct window is computed once, and answers all who ask."""

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.layers.distinct import distinct, scores_of_windows
from nmt.layers.output.softmax import Softmax


def test_distinct_rows() -> None:
    rng = np.random.default_rng(1)
    for shape in ((0, 3), (1, 1), (500, 3)):
        rows = rng.integers(0, 5, shape)
        unique, index = distinct(rows)
        assert (unique[index] == rows).all()
        assert np.unique(rows, axis=0).tolist() == unique.tolist(), "sorted, each once"


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("rows", [2, 512])
def test_scores_are_those_of_each_window(
    normalized: bool, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.layers.distinct.ROWS", rows)
    torch.manual_seed(0)
    windows, output = torch.randn(7, 4).double(), Softmax(4, 6).double().eval()
    torch.nn.init.normal_(output.words)
    index = np.array([3, 0, 6, 1, 1, 2, 4, 5, 3])
    words = np.array([5, 1, 0, 2, 3, 4, 0, 1, 2])
    asked: list[int] = []

    def features(start: int, stop: int) -> Tensor:
        asked.extend(range(start, stop))
        return windows[start:stop]

    found = scores_of_windows(output, features, index, words, normalized)
    scores = output.scores(windows) if normalized else output.log_probs(windows)
    assert found.tolist() == pytest.approx(scores.detach().numpy()[index, words].tolist(), abs=1e-12)
    assert asked == list(range(7)), "each once"
    none = np.zeros(0, np.int64)
    assert scores_of_windows(output, features, none, none, normalized).tolist() == []
