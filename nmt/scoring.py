"""log p(target | source) of given pairs: natural logarithm, end symbol included, many pairs at a time."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.data import prefix_tree
from nmt.data.batches import Ids
from nmt.layers.batch_scores import level_words, walk_tries, word_scores
from nmt.models.protocols import PrefixTrees
from nmt.models.registry import AnyModel

__all__ = ["pair_scores", "word_scores"]


def pair_scores(
    model: AnyModel, sources: Sequence[Ids], targets: Sequence[Ids], source_of: Sequence[int]
) -> NDArray[np.float64]:
    """log p(target | source) of each target: natural logarithm, end symbol included, (n,). The source of
    target i is sources[source_of[i]]; ids are without end symbols.

    Equal to the sums of `word_scores` up to rounding. For a model that can walk through tries this is 20 to
    40 times as fast as one pair at a time: the targets of a source form a trie, and a level of all tries is
    one matrix product.
    """
    if not isinstance(model, PrefixTrees):
        pairs = [(sources[row], target) for row, target in zip(source_of, targets, strict=True)]
        return np.array([math.fsum(scores) for scores in word_scores(model, pairs)])
    with torch.no_grad():
        levels = prefix_tree.levels(targets, source_of)
        token_ids, index = level_words(levels)
        # The last sources may have no target, and then no trie.
        walk = model.walk(sources[: len(levels[0].token_ids)], token_ids)
        return walk_tries(walk, levels, index, len(targets))
