"""Features without torch: n-gram models and a count of unknown words."""

import math
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import CheckpointError, DataError
from nmt.ngram import count_models
from nmt.text.vocab import Vocab
from smt_bridge.features.base import WordPairs
from smt_bridge.features.count_features import CountLM, UnknownWords, vocab_path
from smt_bridge.features.registry import FeatureSettings, FeatureSpec
from tests.smt_bridge.cli.scored_tables import ARPA, arpa_score

# ---- test count lm -----------------------------------------------------------------------------------------
# An n-gram model as a feature: phrases and sentences, forward and from the end.


TARGETS = [["the", "dog"], [], ["zzz"], ["dog", "the", "dog", "&apos;"]]
TARGET_PAIRS = WordPairs(sources=[["x"]], targets=TARGETS, source_of=[0] * 4)


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "lm").write_text(ARPA)
    return str(tmp_path / "lm")


def count_lm(path: str, kind: str = "lm") -> CountLM:
    return CountLM.load(FeatureSpec(kind=kind, name="L", path=path), FeatureSettings())


def test_a_phrase_is_scored_from_nowhere_to_nowhere(path: str) -> None:
    """Computed by hand from the numbers of the file, as natural logarithms."""
    expected = [math.log(10) * arpa_score(words) for words in TARGETS]
    np.testing.assert_allclose(count_lm(path).score(TARGET_PAIRS), expected, atol=1e-6)


def test_a_sentence_has_both_ends(path: str) -> None:
    whole = WordPairs(sources=[["x"]], targets=TARGETS, source_of=[0] * 4, whole=True)
    model = count_models.load_count_model(path)
    expected = [scores.sum() for scores in model.scores(TARGETS)]
    found = count_lm(path).score(whole)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert (found != count_lm(path).score(TARGET_PAIRS)).all()


def test_a_reverse_model_reads_from_the_end(path: str) -> None:
    turned = WordPairs(TARGET_PAIRS.sources, [words[::-1] for words in TARGETS], TARGET_PAIRS.source_of)
    found = count_lm(path, "reverse-lm").score(TARGET_PAIRS)
    assert (
        found.tolist() == count_lm(path).score(turned).tolist() != count_lm(path).score(TARGET_PAIRS).tolist()
    )


def test_an_identity_for_each_direction_and_file(path: str) -> None:
    before = {count_lm(path).identity(), count_lm(path, "reverse-lm").identity()}
    assert len(before) == 2 and count_lm(path).identity() in before
    Path(path).write_text(ARPA.replace("-0.75", "-0.7"))
    assert count_lm(path).identity() not in before


# ---- test unknown words ------------------------------------------------------------------------------------
# Counting words outside a vocabulary.


KNOWN_PAIRS = WordPairs(
    sources=[["le", "x"], ["y", "y"]], targets=[["le"], ["y", "l&apos;"], ["z"]], source_of=[0, 1, 1]
)


def unknown_words(tmp_path: Path, side: str) -> UnknownWords:
    Vocab.count([["le", "l'"]], size=9).save(tmp_path / "v")
    spec = FeatureSpec(kind="unknown-words", name="U", path=str(tmp_path / "v"))
    return UnknownWords.load(spec, FeatureSettings(side=side))


def test_of_either_side(tmp_path: Path) -> None:
    assert unknown_words(tmp_path, "target").score(KNOWN_PAIRS).tolist() == [0, 1, 1]  # escapes are undone
    assert unknown_words(tmp_path, "source").score(KNOWN_PAIRS).tolist() == [1, 2, 2]


def test_refusals(examples: Path) -> None:
    with pytest.raises(DataError, match="cuts words into subwords"):
        vocab_path(str(examples / "runs" / "en-fr"), "target")
    with pytest.raises(CheckpointError, match="no run directory and no vocabulary file"):
        vocab_path(str(examples / "nosuch"), "target")
