"""A neural language model as a feature: sums of the model's own log probabilities, of whole sentences and of
phrases."""

from pathlib import Path

import numpy as np
import pytest

from nmt.lm.protocols import scorer_of
from nmt.runs import checkpoint
from smt_bridge.features.base import WordPairs
from smt_bridge.features.neural_lm import NeuralLM
from smt_bridge.features.spec import FeatureSettings, FeatureSpec
from tests.conftest import ROOT
from tests.smt_bridge.cli.scored_tables import ARPA

RUN = ROOT / "tests" / "golden" / "0.5.0" / "lm"
TARGETS = [["la", "fille"], [], ["zzz", "l&apos;", "chien"]]


def feature(**settings: object) -> NeuralLM:
    found = NeuralLM.load(
        FeatureSpec(kind="neural-lm", name="N", path=str(RUN)),
        FeatureSettings(**settings),  # type: ignore[arg-type]
    )
    assert isinstance(found, NeuralLM)
    return found


def pairs(whole: bool) -> WordPairs:
    return WordPairs(sources=[["x"]], targets=TARGETS, source_of=[0, 0, 0], whole=whole)


@pytest.mark.parametrize("whole", [False, True])
def test_one_by_one_through_the_run(whole: bool) -> None:
    """Escapes are undone, text is cut as the run's; a phrase has no end symbol."""
    run = checkpoint.load_lm(str(RUN), "best", "cpu")
    scorer = scorer_of(run.model, False, run.directory)
    expected = []
    for words in TARGETS:
        text = run.text.cut([word.replace("&apos;", "'") for word in words])
        expected.append(float(scorer.score_sentences([run.words.encode(text)], ends=whole)[0]))
    np.testing.assert_allclose(feature().score(pairs(whole)), expected, atol=1e-5)


def test_the_share_of_unknown_words(tmp_path: Path) -> None:
    """With a back-off model an unknown word costs more than the p(UNK) that all of them have together; known
    ones cost the same."""
    counted = ["zzz", "yyy"]
    lines = "".join(f"-{number}\t{word}\t0\n" for number, word in enumerate(["<unk>", "</s>", *counted], 1))
    (tmp_path / "lm").write_text(
        f"\\data\\\nngram 1=5\n\n\\1-grams:\n-99\t<s>\t0\n{lines}\n\\end\\\n", encoding="utf-8"
    )
    before, after = feature().score(pairs(True)), feature(backoff=str(tmp_path / "lm")).score(pairs(True))
    run = checkpoint.load_lm(str(RUN), "best", "cpu")
    texts = [run.text.cut([word.replace("&apos;", "'") for word in words]) for words in TARGETS]
    unknown = [any(unit not in run.words.ids for unit in text) for text in texts]
    assert unknown[2] and not unknown[1]
    for old, new, has in zip(before, after, unknown, strict=True):
        assert new < old if has else new == old


def test_an_identity_of_the_arithmetic_and_the_shares(tmp_path: Path) -> None:
    (tmp_path / "lm").write_text(ARPA)
    found = [
        feature().identity(),
        feature(precision="int8").identity(),
        feature(backoff=str(tmp_path / "lm")).identity(),
    ]
    assert len(set(found)) == 3 and feature(threads=2, back_end="eigen").identity() == found[0]


def test_only_the_target_side_is_read() -> None:
    readers = feature().readers()
    assert list(readers) == ["target"] and "zzz" not in readers["target"].known
