"""Which models have which capability, and what is said where one is missing."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.lm.multiscale.dictionary import Dictionary
from nmt.lm.protocols import (
    NgramNetwork,
    NormalizedScores,
    OpenVocabulary,
    RunningTextModel,
    TokenSampler,
    scorer_of,
)
from nmt.lm.registry import LANGUAGE_MODELS
from tests.nmt.lm.models import TEXTS, model_of

PROTOCOLS = (NgramNetwork, NormalizedScores, RunningTextModel, TokenSampler, OpenVocabulary)


def test_capabilities_of_the_types() -> None:
    symbols, found = ["<s>", "</s>", "<unk>", "a"], {}
    for name, kind in LANGUAGE_MODELS.items():
        model = kind.build(kind.Config(embedding=8), symbols, Dictionary([("a",)], [1]))
        found[name] = [protocol for protocol in PROTOCOLS if isinstance(model, protocol)]
    assert found == {
        "cslm": [NgramNetwork, NormalizedScores],
        "log-bilinear": [NgramNetwork, NormalizedScores],
        "recurrent": [RunningTextModel],
        "characters": [RunningTextModel, OpenVocabulary],
        "transformer": [],
        "multiscale": [RunningTextModel, TokenSampler],
    }


def test_scores_without_log_z_are_for_models_trained_for_them() -> None:
    plain, trained = model_of("cslm"), model_of("cslm", normalizer=0.1)
    assert scorer_of(plain, False, Path("run")) is plain
    for model in (plain, model_of("lstm", normalizer=0.1)):
        with pytest.raises(ConfigError, match=r"run is not a CSLM trained with lm\.normalizer"):
            scorer_of(model, True, Path("run"))
    exact, fast = (
        scorer_of(trained, normalized, Path("run")).score_texts(TEXTS) for normalized in (False, True)
    )
    assert exact != fast and [len(line) for line in exact] == [len(line) for line in fast]
