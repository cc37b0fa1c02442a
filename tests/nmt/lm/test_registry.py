"""`lm.type` names a class, users' own ones too."""

import pytest

from nmt.errors import ConfigError
from nmt.lm.base import FeatureLM
from nmt.lm.registry import LANGUAGE_MODELS, language_model_class


def test_a_class_of_ones_own_is_found_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ConfigError, match=r"lm\.type: 'mine' is unknown, expected one of 'cslm', 'log-bilinear', 'rec"
    ):
        language_model_class("mine")
    monkeypatch.setitem(LANGUAGE_MODELS, "mine", FeatureLM)
    assert language_model_class("mine") is FeatureLM
    with pytest.raises(ConfigError, match=r"'mine'$"):
        language_model_class("yours")


@pytest.mark.parametrize("kind", list(LANGUAGE_MODELS))
def test_a_configuration_says_its_type(kind: str) -> None:
    config = LANGUAGE_MODELS[kind].Config()
    assert config.type == kind
    config.check()
