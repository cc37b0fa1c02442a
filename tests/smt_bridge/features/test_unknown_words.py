"""Counting words outside a vocabulary."""

from pathlib import Path

import pytest

from nmt.errors import CheckpointError, DataError
from nmt.text.vocab import Vocab
from smt_bridge.features.base import WordPairs
from smt_bridge.features.registry import FeatureSettings, FeatureSpec
from smt_bridge.features.unknown_words import UnknownWords, vocab_path

PAIRS = WordPairs(
    sources=[["le", "x"], ["y", "y"]], targets=[["le"], ["y", "l&apos;"], ["z"]], source_of=[0, 1, 1]
)


def feature(tmp_path: Path, side: str) -> UnknownWords:
    Vocab.count([["le", "l'"]], size=9).save(tmp_path / "v")
    spec = FeatureSpec(kind="unknown-words", name="U", path=str(tmp_path / "v"))
    return UnknownWords.load(spec, FeatureSettings(side=side))


def test_of_either_side(tmp_path: Path) -> None:
    assert feature(tmp_path, "target").score(PAIRS).tolist() == [0, 1, 1]  # escapes are undone
    assert feature(tmp_path, "source").score(PAIRS).tolist() == [1, 2, 2]


def test_refusals(examples: Path) -> None:
    with pytest.raises(DataError, match="cuts words into subwords"):
        vocab_path(str(examples / "runs" / "en-fr"), "target")
    with pytest.raises(CheckpointError, match="no run directory and no vocabulary file"):
        vocab_path(str(examples / "nosuch"), "target")
