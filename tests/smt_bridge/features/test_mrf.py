"""A Markov random field as a feature: the scores of the model, sentences and phrases told apart."""

from pathlib import Path

import pytest

from nmt.lm.mrf.config import MRFConfig
from nmt.lm.mrf.model import ChainMRF
from nmt.runs import mrf
from nmt.text.vocab import UNK, Vocab
from smt_bridge.features.base import WordPairs
from smt_bridge.features.registry import FEATURES, parse
from smt_bridge.features.spec import FeatureSettings

TARGETS = [["l&apos;", "eau"], ["eau", "nouveau", "l&apos;"], []]


@pytest.mark.parametrize("whole", [True, False])
def test_scores_are_those_of_the_model(tmp_path: Path, whole: bool) -> None:
    vocab = Vocab({"l'": 2, "eau": 1}, 2)
    model = ChainMRF(MRFConfig(order=2, dimension=3), len(vocab))
    mrf.save(tmp_path / "m", model, vocab)
    (spec,) = parse([f"mrf={tmp_path / 'm'}"])
    assert spec.name == "MRF0"
    feature = FEATURES["mrf"].load(spec, FeatureSettings())
    pairs = WordPairs(sources=[["x"]], targets=TARGETS, source_of=[0, 0, 0], whole=whole)
    water, of = vocab.ids["eau"], vocab.ids["l'"]
    expected = model.score_sentences([[of, water], [water, UNK, of], []], ends=whole)
    assert feature.score(pairs).tolist() == expected.tolist()
    before = feature.identity()
    mrf.save(tmp_path / "m", ChainMRF(MRFConfig(order=2, dimension=3, seed=2), len(vocab)), vocab)
    assert FEATURES["mrf"].load(spec, FeatureSettings()).identity() != before
