"""Options of features: settings from them, the back end of a job that is resumed, models that are inputs."""

import argparse
from pathlib import Path

import pytest
import torch

from nmt.errors import ConfigError
from nmt.jobs import begun, folder
from smt_bridge.cli import features
from smt_bridge.features.registry import FEATURES, FeatureSettings, parse
from tests.nmt.compute.restored import torch_as_before

as_before = pytest.fixture(autouse=True)(torch_as_before)


def parsed(*words: str, required: bool = False) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    features.add_features(parser, required)
    return parser.parse_args(words)


def test_defaults_are_those_of_the_settings() -> None:
    settings, line = features.set_up(parsed("--matmul", "mkl"), [], "out")
    assert settings == FeatureSettings(back_end="mkl", threads=1)
    assert line.endswith(", 1 worker") and torch.get_num_threads() == 1


def test_settings_from_options() -> None:
    args = parsed(
        "--unknown", "split", "--side", "source", "--assume-normalized", "--precision", "int8",
        "--backoff", "b", "--threads", "2", "--workers", "3", "--matmul", "mkl",
    )  # fmt: skip
    settings, line = features.set_up(args, [], "out")
    assert settings == FeatureSettings(
        unknown="split", side="source", assume_normalized=True, precision="int8", backoff="b", threads=2,
        back_end="mkl",
    )  # fmt: skip
    assert line.endswith(", 3 workers") and torch.get_num_threads() == 2


def test_a_resumed_job_keeps_its_back_end(tmp_path: Path) -> None:
    """Whatever the options say; another back end gives other digits."""
    output = str(tmp_path / "out")
    folder.folder_of(output).mkdir()
    begun.write(folder.folder_of(output) / folder.SETTINGS, {"back_end": "onednn"})
    assert features.set_up(parsed("--matmul", "mkl", "--resume"), [], output)[0].back_end == "onednn"
    assert features.set_up(parsed("--matmul", "mkl"), [], output)[0].back_end == "mkl"


def test_every_kind_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--help")
    text = "".join(capsys.readouterr().out.split())  # a line may end at a hyphen
    assert all("".join(f"{name}:{kind.help}".split()) in text for name, kind in FEATURES.items())
    with pytest.raises(SystemExit):
        parsed(required=True)
    assert "--feature" in capsys.readouterr().err and parsed().feature == []


def test_models_are_not_written_over(tmp_path: Path) -> None:
    lm = tmp_path / "lm"
    lm.write_text("x")
    specs, args = parse([f"lm={lm}"]), parsed("--backoff", str(tmp_path / "b"))
    features.check_separate(args, specs, [], [("--output", str(tmp_path / "out")), ("--best", None)])
    for name, blamed in (("lm", "--feature lm"), ("b", "--backoff")):
        (tmp_path / name).write_text("x")
        with pytest.raises(ConfigError, match=f"is read too.*{blamed}"):
            features.check_separate(args, specs, [], [("--output", str(tmp_path / name))])
