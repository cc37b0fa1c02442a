from pathlib import Path

import pytest

from nmt import config
from nmt.errors import ConfigError


def load(folder: Path, text: str, *overrides: str) -> config.RunConfig:
    (folder / "c.yaml").write_text(text)
    return config.load(str(folder / "c.yaml"), list(overrides))


def test_numbers_sections_and_overrides(tmp_path: Path) -> None:
    result = load(tmp_path, "run: r\ntraining: {learning_rate: 1e-4}\n", "model.hidden=50", "data.source.case=keep")
    assert (result.training.learning_rate, result.model.hidden, result.data.source.case) == (1e-4, 50, "keep")
    assert result.data.target.language == "fr"


def test_written_configuration_is_the_same(tmp_path: Path) -> None:
    first = load(tmp_path, "run: r\nmodel: {hidden: 7}\n")
    assert load(tmp_path, config.to_yaml(first)) == first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run: r\nmodel:\n  hiden: 5\n", "c.yaml:3: unknown key 'model.hiden', did you mean 'model.hidden'?"),
        ("run: r\nhidden: 5\n", "c.yaml:2: unknown key 'hidden', did you mean 'model.hidden' or 'lm.hidden'?"),
        ("run: r\ndata:\n  source: {langage: en}\n", "c.yaml:3: unknown key 'data.source.langage', did you mean 'data.source.language'?"),
        ("run: r\nmodel:\n  hidden: many\n", "c.yaml:3: model.hidden: "),
        ("run: r\nmodel: 3\n", "c.yaml:2: model is a section"),
        ("run: r\nmodel: [1\n", "c.yaml:3: not valid YAML"),
        ("- a\n- b\n", "c.yaml: expected sections"),
        ("model: {hidden: 5}\n", "run is missing"),
        ("", "run is missing"),
        ("run: r\ndata:\n  train_source: ${oc.env:NO_SUCH_VARIABLE}/x\n", "c.yaml:3: data.train_source: "),
        ("run: r\nseed: -1\n", "seed: -1 is negative"),
        ("run: r\ntraining: {cost: words}\n", "training.cost: 'words' is unknown"),
        ("run: r\ntraining: {batch_size: 0}\n", "training.batch_size: 0 is too small"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(tmp_path, text)
    assert message in str(error.value)


@pytest.mark.parametrize("override", ["model.hidden", "model.hiden=3", "model.hidden=many", "model.hidden=[1"])
def test_bad_overrides_are_named(tmp_path: Path, override: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(tmp_path, "run: r\n", override)
    assert str(error.value).startswith(override)


def test_differences_leave_out_the_limits(tmp_path: Path) -> None:
    before = load(tmp_path, "run: r\n")
    (tmp_path / "config.yaml").write_text(config.to_yaml(before))
    now = load(tmp_path, "run: q\n", "training.max_steps=9", "model.hidden=3")
    assert config.differences(now, tmp_path) == ["model.hidden=3 (was 1000)"]
