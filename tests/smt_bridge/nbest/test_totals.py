"""Totals are weights x features, and -100 for each unknown word."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.formats import nbest
from smt_bridge.moses import weights
from smt_bridge.nbest import totals

ENTRY = "0 ||| a b ||| A= 1 2 B= -3 ||| {} ||| 0=0"


def test_a_total() -> None:
    features = nbest.parse(ENTRY.format(0), "n:1").features
    assert totals.total(features, {"A": [0.5, 0.25], "B": [2.0]}) == -5
    with pytest.raises(ConfigError, match="no weight for feature B"):
        totals.check_weights(features, {"A": [1.0, 1.0]})
    with pytest.raises(ConfigError, match="feature A has 2 values, but 1 weights"):
        totals.check_weights(features, {"A": [1.0], "B": [1.0]})


def test_unknown_words() -> None:
    used = {"A": [0.5, 0.25], "B": [2.0]}
    for count in range(3):
        entry = nbest.parse(ENTRY.format(-5 - 100 * count), "n:1")
        assert totals.unknown_words(entry, used) == -100 * count == totals.beyond_features(entry, used)
    with pytest.raises(ConfigError, match="these are not the weights that its decoder used"):
        totals.unknown_words(nbest.parse(ENTRY.format(-50), "n:1"), used)
    assert totals.beyond_features(nbest.parse(ENTRY.format(-205), "n:1"), None) == 0


def test_real_lists_say_what_their_features_are(nmt_data: Path) -> None:
    """Each line of the real 100-best lists: Σ weight x feature is the printed total to 1e-3, unknown words
    (-100) accounted for."""
    folder = nmt_data / "moses-multi30k"
    tuned = weights.read(folder / "moses.tuned.ini")
    count = unknown = 0
    for name in ("val", "test_2016_flickr"):
        for hypothesis in nbest.read(folder / "out" / f"{name}.100best.segalign.gz"):
            beyond = totals.unknown_words(hypothesis, tuned)
            assert abs(totals.total(hypothesis.features, tuned) + beyond - hypothesis.total) < 1e-3
            count += 1
            unknown += beyond != 0
    assert count == 139374 and unknown > 1000
