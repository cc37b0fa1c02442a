"""An n-gram model as a feature: phrases and sentences, forward and from the end."""

import math
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import ConfigError
from nmt.lm.base import choose_scorer
from nmt.ngram import count_model
from nmt.runs import checkpoint, language_model
from nmt.runs.language_model import MixtureFile, MixtureModel, fingerprint
from smt_bridge.features.base import WordPairs
from smt_bridge.features.language_models import CountLM, MixtureLM, NeuralLM
from smt_bridge.features.registry import FeatureSettings, FeatureSpec
from tests.conftest import ROOT
from tests.smt_bridge.cli.scored_tables import ARPA, arpa_score

# ---- test count lm -----------------------------------------------------------------------------------------
# An n-gram model as a feature: phrases and sentences, forward and from the end.


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


# ---- test neural lm ----------------------------------------------------------------------------------------
# A neural language model as a feature: sums of the model's own log probabilities, of whole sentences and of
# phrases.


RUN = ROOT / "tests" / "models" / "lm"
NEURAL_TARGETS = [["la", "fille"], [], ["zzz", "l&apos;", "chien"]]


def neural_feature(**settings: object) -> NeuralLM:
    found = NeuralLM.load(
        FeatureSpec(kind="neural-lm", name="N", path=str(RUN)),
        FeatureSettings(**settings),  # type: ignore[arg-type]
    )
    assert isinstance(found, NeuralLM)
    return found


def pairs(whole: bool) -> WordPairs:
    return WordPairs(sources=[["x"]], targets=NEURAL_TARGETS, source_of=[0, 0, 0], whole=whole)


@pytest.mark.parametrize("whole", [False, True])
def test_one_by_one_through_the_run(whole: bool) -> None:
    """Escapes are undone, text is cut as the run's; a phrase has no end symbol."""
    run = checkpoint.load_lm(str(RUN), "best", "cpu")
    scorer = choose_scorer(run.model, False, run.directory)
    expected = []
    for words in NEURAL_TARGETS:
        text = run.text.cut([word.replace("&apos;", "'") for word in words])
        expected.append(float(scorer.score_sentences([run.words.encode(text)], ends=whole)[0]))
    np.testing.assert_allclose(neural_feature().score(pairs(whole)), expected, atol=1e-5)


def test_the_share_of_unknown_words(tmp_path: Path) -> None:
    """With a back-off model an unknown word costs more than the p(UNK) that all of them have together; known
    ones cost the same."""
    counted = ["zzz", "yyy"]
    lines = "".join(f"-{number}\t{word}\t0\n" for number, word in enumerate(["<unk>", "</s>", *counted], 1))
    (tmp_path / "lm").write_text(
        f"\\data\\\nngram 1=5\n\n\\1-grams:\n-99\t<s>\t0\n{lines}\n\\end\\\n", encoding="utf-8"
    )
    before, after = (
        neural_feature().score(pairs(True)),
        neural_feature(backoff=str(tmp_path / "lm")).score(pairs(True)),
    )
    run = checkpoint.load_lm(str(RUN), "best", "cpu")
    texts = [run.text.cut([word.replace("&apos;", "'") for word in words]) for words in NEURAL_TARGETS]
    unknown = [any(unit not in run.words.ids for unit in text) for text in texts]
    assert unknown[2] and not unknown[1]
    for old, new, has in zip(before, after, unknown, strict=True):
        assert new < old if has else new == old


def test_an_identity_of_the_arithmetic_and_the_shares(tmp_path: Path) -> None:
    (tmp_path / "lm").write_text(ARPA)
    found = [
        neural_feature().identity(),
        neural_feature(precision="int8").identity(),
        neural_feature(backoff=str(tmp_path / "lm")).identity(),
    ]
    assert len(set(found)) == 3 and neural_feature(threads=2, back_end="eigen").identity() == found[0]


def test_only_the_target_side_is_read() -> None:
    readers = neural_feature().readers()
    assert list(readers) == ["target"] and "zzz" not in readers["target"].vocabulary


# ---- test mixture lm ---------------------------------------------------------------------------------------
# A mixture of language models as a feature.


def spec(path: Path) -> FeatureSpec:
    return FeatureSpec(kind="neural-lm", name="M", path=str(path))


@pytest.mark.parametrize("whole", [False, True])
def test_two_equal_runs_are_the_run(whole: bool, tmp_path: Path) -> None:
    step = checkpoint.load_lm(RUN).step
    parts = [MixtureModel(str(RUN), step, fingerprint(RUN, step))] * 2
    language_model.write_mixture(tmp_path / "mix", MixtureFile(parts, [[0.25, 0.75]]))
    found = NeuralLM.load(spec(tmp_path / "mix"), FeatureSettings())
    assert isinstance(found, MixtureLM)
    assert found.score(pairs(whole)).tolist() == pytest.approx(
        neural_feature().score(pairs(whole)).tolist(), abs=1e-4
    )
    first = found.identity()
    language_model.write_mixture(tmp_path / "mix", MixtureFile(parts, [[0.5, 0.5]]))
    assert NeuralLM.load(spec(tmp_path / "mix"), FeatureSettings()).identity() != first
    with pytest.raises(ConfigError, match=r"--assume-normalized: .* is a mixture"):
        NeuralLM.load(spec(tmp_path / "mix"), FeatureSettings(assume_normalized=True))
