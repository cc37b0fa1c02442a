"""What a run trains is named by the type of its section, also where a plugin adds the type."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from nmt.errors import CheckpointError, ConfigError
from nmt.models.config import ModelConfig
from nmt.models.registry import MODELS
from nmt.models.rnn.translator import Translator
from nmt.models.transformer.config import TransformerConfig
from nmt.runs import checkpoint
from nmt.settings import number
from nmt.training import config_file as config
from nmt.training.run_config import RunConfig


@dataclass
class ToyConfig(ModelConfig):
    """The section `model` of a toy."""

    width: int = number(4, least=1)


class Toy(Translator):
    """A model of a plugin."""

    Config = ToyConfig  # type: ignore[assignment]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "toy", Toy)


def load(folder: Path, text: str, *overrides: str) -> RunConfig:
    (folder / "c.yaml").write_text(text)
    return config.load(str(folder / "c.yaml"), overrides)


@pytest.mark.usefixtures("toy")
def test_the_keys_are_those_of_the_type(tmp_path: Path) -> None:
    found = load(tmp_path, "run: r\nmodel: {type: toy, width: 9}\n")
    assert found.model == ToyConfig(type="toy", width=9)
    assert load(tmp_path, config.to_yaml(found)) == found
    assert load(tmp_path, "run: r\n", "model.type=toy", "model.width=3").model == ToyConfig("toy", 3)
    with pytest.raises(
        ConfigError, match=r"c\.yaml:2: unknown key 'model\.widht', did you mean 'model\.width'"
    ):
        load(tmp_path, "run: r\nmodel: {type: toy, widht: 9}\n")
    with pytest.raises(ConfigError, match=r"c\.yaml:2: unknown key 'model\.hidden'"):
        load(tmp_path, "run: r\nmodel: {type: toy, hidden: 9}\n")
    with pytest.raises(ConfigError, match=r"^model\.width=0: model\.width: 0 is out of range"):
        load(tmp_path, "run: r\nmodel: {type: toy}\n", "model.width=0")


def test_an_unknown_type_is_named_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"c\.yaml:3: model\.type: 'toy' is unknown, expected one of 'rnn'"):
        load(tmp_path, "run: r\nmodel:\n  type: toy\n")
    with pytest.raises(ConfigError, match=r"^lm\.type=x: lm\.type: 'x' is unknown, expected one of 'cslm'"):
        load(tmp_path, "run: r\nlm: {type: cslm}\n", "lm.type=x")
    with pytest.raises(ConfigError, match=r"c\.yaml:2: lm\.type: missing; set lm\.type, expected one of"):
        load(tmp_path, "run: r\nlm: {dropout: 0.1}\n")


def test_a_run_is_a_translator_or_a_language_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"c\.yaml:3: model: a run has either .*\(.*c\.yaml:2\); leave one"):
        load(tmp_path, "run: r\nlm: {type: cslm}\nmodel: {hidden: 3}\n")
    with pytest.raises(ConfigError, match=r"^model\.hidden=3: model: a run has either"):
        load(tmp_path, "run: r\nlm: {type: cslm}\n", "model.hidden=3")
    assert load(tmp_path, "run: r\nlm: {type: cslm}\nmodel:\n").model is None  # an empty section is none


def test_a_preset_leaves_out_the_section_that_is_not_trained(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("run: r\nlm: {type: cslm}\n")
    found = config.load(str(tmp_path / "c.yaml"), preset="small")
    assert found.model is None and found.training.optimizer == "adam"


def test_a_preset_may_name_the_type(tmp_path: Path) -> None:
    """Its section is that of its type, whatever else the file gives; another type is refused by name."""
    (tmp_path / "c.yaml").write_text("run: r\nmodel: {feed_forward: 7}\n")
    found = config.load(str(tmp_path / "c.yaml"), preset="transformer-small")
    assert isinstance(found.model, TransformerConfig)
    assert (found.model.type, found.model.feed_forward, found.model.heads) == ("transformer", 7, 4)
    assert found.training.beta2 == 0.98 and found.training.keep == 10
    with pytest.raises(ConfigError, match=r"small\.yaml: unknown key 'model\.encoder'"):
        config.load(str(tmp_path / "c.yaml"), ["model.type=transformer"], preset="small")


def test_a_run_of_a_plugin_that_is_not_loaded_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(MODELS, "toy", Toy)
        made = load(tmp_path, "run: r\nmodel: {type: toy}\n")
        (tmp_path / "config.yaml").write_text(config.to_yaml(made))
        assert checkpoint.read_config(tmp_path).model == made.model
    with pytest.raises(CheckpointError, match=r"config\.yaml: model\.type: 'toy' is unknown.*NMT_PLUGINS"):
        checkpoint.read_config(tmp_path)


def test_a_configuration_from_python_is_checked_as_a_file_is() -> None:
    found = config.from_mapping({"run": "r", "model": {"hidden": 5}, "training": {"max_steps": 2}})
    assert isinstance(found.model, ModelConfig) and found.training.max_steps == 2
    for content, message in (
        ({"run": "r", "modle": {}}, "unknown key 'modle', did you mean 'model'"),
        ({"run": "r", "model": {"hidden": 0}}, "model.hidden: 0 is out of range"),
        ({"model": {}}, "run is missing"),
        ({"run": "r", "model": object()}, "configuration"),
    ):
        with pytest.raises(ConfigError, match=message):
            config.from_mapping(content)
