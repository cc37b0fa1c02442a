"""A Markov random field as a feature: the scores of the model, sentences and phrases told apart."""

from pathlib import Path

import pytest

from nmt.papers.mrf import file
from nmt.papers.mrf.config import MRFConfig
from nmt.papers.mrf.model import ChainMRF
from nmt.text.vocab import UNK, Vocab
from smt_bridge.features.base import WordPairs
from smt_bridge.features.registry import FEATURES, FeatureSettings, parse_features

TARGETS = [["l&apos;", "eau"], ["eau", "nouveau", "l&apos;"], []]


@pytest.mark.parametrize("whole", [True, False])
def test_scores_are_those_of_the_model(tmp_path: Path, whole: bool) -> None:
    vocab = Vocab({"l'": 2, "eau": 1}, 2)
    model = ChainMRF(MRFConfig(order=2, dimension=3), len(vocab))
    file.save(tmp_path / "m", model, vocab)
    (spec,) = parse_features([f"mrf={tmp_path / 'm'}"])
    assert spec.name == "MRF0"
    feature = FEATURES["mrf"].load(spec, FeatureSettings())
    pairs = WordPairs(sources=[["x"]], targets=TARGETS, source_of=[0, 0, 0], whole=whole)
    eau, l_apos = vocab.ids["eau"], vocab.ids["l'"]
    expected = model.score_sentences([[l_apos, eau], [eau, UNK, l_apos], []], ends=whole)
    assert feature.score(pairs).tolist() == expected.tolist()
    before = feature.identity()
    file.save(tmp_path / "m", ChainMRF(MRFConfig(order=2, dimension=3, seed=2), len(vocab)), vocab)
    assert FEATURES["mrf"].load(spec, FeatureSettings()).identity() != before
