"""Networks that read a window of words: each distinct window is computed once, whatever is asked of it.

G questions, U distinct windows, K features.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.layers.output import OutputLayer, WordByWord

ROWS = 512  # windows at a time: a softmax of 128 rows is 0.85 times as fast
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def distinct(rows: Ints) -> tuple[Ints, Ints]:
    """Distinct rows of (N, k) and the index of each row in them: (U, k), (N,). Column by column, which is ten
    times as fast as np.unique(axis=0)."""
    index = np.zeros(len(rows), np.int64)
    for column in rows.T:
        index = np.unique(index * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
    first = np.empty(int(index.max(initial=-1)) + 1, np.int64)
    first[index] = np.arange(len(index))
    return rows[first], index


@torch.no_grad()
def scores_of_windows(
    output: OutputLayer, features: Callable[[int, int], Tensor], index: Ints, words: Ints, normalized: bool
) -> Floats:
    """log p of words after windows: (G,). `features(start, stop)`: of some of the U windows, (stop - start,
    K); `index` (G,): the window of each word, (G,); `normalized`: log Z is taken as 0."""
    count = int(index.max(initial=-1)) + 1
    order = np.argsort(index, kind="stable")
    index, words = index[order], words[order]
    result = np.empty(len(words))
    room = None if normalized else output.room(min(ROWS, count))
    for start in range(0, count, ROWS):
        found = features(start, min(start + ROWS, count))
        edges = slice(*np.searchsorted(index, [start, start + len(found)]))
        asked, answers = (
            torch.from_numpy(part).to(found.device) for part in (index[edges] - start, words[edges])
        )
        if isinstance(output, WordByWord):
            scores = output.log_probs_of_words(found, asked, answers)
        elif room is None:
            scores = output.scores_of(found.index_select(0, asked), answers)
        else:
            scores = output.log_probs(found, out=room[: len(found)])[asked, answers]
        result[order[edges]] = scores.double().cpu().numpy()
    return result
