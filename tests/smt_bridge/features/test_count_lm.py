"""An n-gram model as a feature: phrases and sentences, forward and from the end."""

import math
from pathlib import Path

import numpy as np
import pytest

from nmt.ngram import count_model
from smt_bridge.features.base import WordPairs
from smt_bridge.features.count_lm import CountLM
from smt_bridge.features.spec import FeatureSettings, FeatureSpec
from tests.smt_bridge.cli.scored_tables import ARPA, arpa_score

TARGETS = [["the", "dog"], [], ["zzz"], ["dog", "the", "dog", "&apos;"]]
PAIRS = WordPairs(sources=[["x"]], targets=TARGETS, source_of=[0] * 4)


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "lm").write_text(ARPA)
    return str(tmp_path / "lm")


def feature(path: str, kind: str = "lm") -> CountLM:
    return CountLM.load(FeatureSpec(kind=kind, name="L", path=path), FeatureSettings())


def test_a_phrase_is_scored_from_nowhere_to_nowhere(path: str) -> None:
    """By hand from the numbers of the file; natural logarithms."""
    expected = [math.log(10) * arpa_score(words) for words in TARGETS]
    np.testing.assert_allclose(feature(path).score(PAIRS), expected, atol=1e-6)


def test_a_sentence_has_both_ends(path: str) -> None:
    whole = WordPairs(sources=[["x"]], targets=TARGETS, source_of=[0] * 4, whole=True)
    model = count_model.load_count_model(path)
    expected = [scores.sum() for scores in model.scores(TARGETS)]
    found = feature(path).score(whole)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert (found != feature(path).score(PAIRS)).all()


def test_a_reverse_model_reads_from_the_end(path: str) -> None:
    turned = WordPairs(PAIRS.sources, [words[::-1] for words in TARGETS], PAIRS.source_of)
    found = feature(path, "reverse-lm").score(PAIRS)
    assert found.tolist() == feature(path).score(turned).tolist() != feature(path).score(PAIRS).tolist()


def test_an_identity_for_each_direction_and_file(path: str) -> None:
    before = {feature(path).identity(), feature(path, "reverse-lm").identity()}
    assert len(before) == 2 and feature(path).identity() in before
    Path(path).write_text(ARPA.replace("-0.75", "-0.7"))
    assert feature(path).identity() not in before
