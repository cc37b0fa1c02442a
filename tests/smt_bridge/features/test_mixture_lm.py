"""A mixture of language models as a feature."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.runs import checkpoint, language_model
from nmt.runs.language_model import MixtureFile, MixtureModel, fingerprint
from smt_bridge.features.mixture_lm import MixtureLM
from smt_bridge.features.neural_lm import NeuralLM
from smt_bridge.features.spec import FeatureSettings, FeatureSpec
from tests.smt_bridge.features.test_neural_lm import RUN, feature, pairs


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
        feature().score(pairs(whole)).tolist(), abs=1e-4
    )
    first = found.identity()
    language_model.write_mixture(tmp_path / "mix", MixtureFile(parts, [[0.5, 0.5]]))
    assert NeuralLM.load(spec(tmp_path / "mix"), FeatureSettings()).identity() != first
    with pytest.raises(ConfigError, match=r"--assume-normalized: .* is a mixture"):
        NeuralLM.load(spec(tmp_path / "mix"), FeatureSettings(assume_normalized=True))
