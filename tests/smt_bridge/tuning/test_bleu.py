"""Statistics of a hypothesis against several references, and BLEU of their sums."""

import numpy as np
import pytest

from smt_bridge.tuning.bleu import COLUMNS, BleuReferences, bleu, grams


def test_counts_are_clipped_by_the_reference_that_has_most() -> None:
    references = BleuReferences([["a", "a", "b"], ["a", "b", "b", "c"]])
    row = references.statistics(["a", "a", "a", "b"])
    assert row == [3, 4, 2, 3, 1, 2, 0, 1, 4]  # a twice, b once; aa, ab; aab


def test_the_closest_length_and_of_equals_the_shorter() -> None:
    references = BleuReferences([["x"] * 2, ["x"] * 6])
    assert [references.statistics(["x"] * size)[-1] for size in (1, 3, 4, 5, 9)] == [2, 2, 2, 6, 6]


def test_a_short_hypothesis_has_no_long_grams() -> None:
    assert grams(["a", "b"]) == {("a",): 1, ("b",): 1, ("a", "b"): 1}
    assert BleuReferences([["a", "b"]]).statistics(["a", "b"]) == [2, 2, 1, 1, 0, 0, 0, 0, 2]


def test_bleu_of_sums() -> None:
    whole = np.array([4, 4, 3, 3, 2, 2, 1, 1, 4.0])
    assert bleu(whole) == pytest.approx(1.0)
    longer = whole.copy()
    longer[-1] = 8
    assert bleu(longer) == pytest.approx(np.exp(1 - 8 / 4))  # brevity penalty
    assert bleu(np.stack([whole, longer, np.zeros(COLUMNS)])).tolist()[2] == 0
