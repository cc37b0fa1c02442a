"""Batch MIRA: the statistics that it compares, and its settings."""

import numpy as np
import pytest

from smt_bridge.tuning.bleu import COLUMNS
from smt_bridge.tuning.kbmira import Kbmira, sentence_bleu
from tests.smt_bridge.tuning.test_mert import random_pool


def test_sentence_bleu_prefers_matches_and_the_right_length() -> None:
    good = np.array([4, 4, 3, 3, 2, 2, 1, 1, 4.0])
    short = np.array([2, 2, 1, 1, 0, 0, 0, 0, 4.0])
    bad = np.array([0, 4, 0, 3, 0, 2, 0, 1, 4.0])
    values = sentence_bleu(np.stack([good, short, bad]), np.ones(COLUMNS))
    assert values[0] > values[1] > values[2] > 0
    assert values[0] == pytest.approx(5)  # BLEU 1 times the reference length, background included


def test_progress_counts_passes_and_the_start_matters() -> None:
    pool, told = random_pool(seed=2), []
    tuner = Kbmira(passes=3)
    found = tuner.tune(pool, None, 1, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert (tuner.tune(pool, np.zeros(3), 1).weights == found.weights).all()
    assert (tuner.tune(pool, np.array([5.0, -5, 5]), 1).weights != found.weights).any()
