"""The recipe of the Transformer: its configuration is what docs and comments say."""

from pathlib import Path

import pytest

from nmt.models.transformer.config import TransformerConfig
from nmt.training import config_file as configuration

RECIPE = Path(__file__).parents[2] / "recipes" / "seeds" / "transformer.yaml"


def test_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens as they are, one vocabulary, enough checkpoints for the mean of ten."""
    monkeypatch.setenv("NMT_DATA", str(tmp_path))
    config = configuration.load(str(RECIPE), ["run=r"], preset="transformer-small")
    assert isinstance(config.model, TransformerConfig) and config.model.tied == "all"
    assert config.data.shared_vocabulary and config.data.source.case == config.data.target.case == "keep"
    assert not config.data.target.tokenize and config.data.train_source.startswith(str(tmp_path))
    assert config.training.keep == 10 and config.training.max_minutes == 85
