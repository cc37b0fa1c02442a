"""Options that commands share."""

import argparse
from pathlib import Path

import pytest
import torch

from nmt.cli.options import Parser
from nmt.errors import ConfigError
from nmt.work import store
from smt_bridge.cli import shared_options
from smt_bridge.features.registry import FEATURES, FeatureSettings, parse_features
from tests.nmt.compute.restored import torch_as_before


def parsed_tables(*words: str) -> argparse.Namespace:
    parser = Parser("smt-x", "Tables.")
    shared_options.add_table(parser)
    shared_options.add_outputs(parser, "of a test", "its rows")
    shared_options.add_unsorted(parser)
    return parser.parse_args(["table", "-i", "a", "b", *words])


def test_both_options_of_the_reordering_table_or_none() -> None:
    for words in ([], ["--reordering", "r", "--reordering-output", "o"]):
        shared_options.check_reordering(parsed_tables(*words))
    for alone in (["--reordering", "r"], ["--reordering-output", "o"]):
        with pytest.raises(ConfigError, match="--reordering and --reordering-output go together"):
            shared_options.check_reordering(parsed_tables(*alone))


def test_what_is_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    found = parsed_tables("--unsorted")
    assert (found.table, found.input, found.output, found.unsorted) == ("table", ["a", "b"], "-", True)
    with pytest.raises(ConfigError, match="is also read"):
        parsed_tables("-o", "table")
    with pytest.raises(SystemExit):
        Parser("smt-x", "Tables.").parse_args(["--nothing"])
    assert capsys.readouterr().err.count("\n") == 1


def test_memory_has_units() -> None:
    for text, expected in (("1.5", 1.5), ("2G", 2.0), ("800M", 0.8), ("0.35", 0.35), ("99", 99.0)):
        assert shared_options.parse_gigabytes(text) == pytest.approx(expected)
    for text in ("", "M", "x", "1T", "nan", "0.3", "300M", "-1"):
        with pytest.raises(argparse.ArgumentTypeError, match=r"expected (GB|0\.35 or more)"):
            shared_options.parse_gigabytes(text)


# ---- features ----------------------------------------------------------------------------------------------


as_before = pytest.fixture(autouse=True)(torch_as_before)


def parsed_features(*words: str, required: bool = False) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    shared_options.add_features(parser, required)
    return parser.parse_args(words)


NETWORK = parse_features(["neural-lm=run"])


def test_defaults_are_those_of_the_settings() -> None:
    settings, line = shared_options.set_up_features(parsed_features("--matmul", "mkl"), NETWORK, "out")
    assert settings == FeatureSettings(back_end="mkl", threads=1)
    assert line.endswith(", 1 worker") and torch.get_num_threads() == 1


def test_settings_from_options() -> None:
    args = parsed_features(
        "--unknown", "split", "--side", "source", "--assume-normalized", "--precision", "int8",
        "--backoff", "b", "--threads", "2", "--workers", "3", "--matmul", "mkl",
    )  # fmt: skip
    settings, line = shared_options.set_up_features(args, NETWORK, "out")
    assert settings == FeatureSettings(
        unknown="split", side="source", assume_normalized=True, precision="int8", backoff="b", threads=2,
        back_end="mkl",
    )  # fmt: skip
    assert line.endswith(", 3 workers") and torch.get_num_threads() == 2


def test_a_resumed_job_keeps_its_back_end(tmp_path: Path) -> None:
    """Whatever the options say, since another back end computes other digits."""
    output = str(tmp_path / "out")
    store.job_folder_path(output).mkdir()
    store.write_settings(store.job_folder_path(output) / store.SETTINGS, {"back_end": "onednn"})
    for words, back_end in ((["--resume"], "onednn"), ([], "mkl")):
        args = parsed_features("--matmul", "mkl", *words)
        assert shared_options.set_up_features(args, NETWORK, output)[0].back_end == back_end


def test_every_kind_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed_features("--help")
    text = "".join(capsys.readouterr().out.split())  # a line may end at a hyphen
    assert all("".join(f"{name}:{kind.help}".split()) in text for name, kind in FEATURES.items())
    with pytest.raises(SystemExit):
        parsed_features(required=True)
    assert "--feature" in capsys.readouterr().err and parsed_features().feature == []


def test_models_are_not_written_over(tmp_path: Path) -> None:
    lm = tmp_path / "lm"
    lm.write_text("x")
    specs, args = parse_features([f"lm={lm}"]), parsed_features("--backoff", str(tmp_path / "b"))
    outputs = [("--output", str(tmp_path / "out")), ("--best", None)]
    shared_options.check_models_separate(args, specs, [], outputs)
    for name, blamed in (("lm", "--feature lm"), ("b", "--backoff")):
        (tmp_path / name).write_text("x")
        with pytest.raises(ConfigError, match=f"is also read.*{blamed}"):
            shared_options.check_models_separate(args, specs, [], [("--output", str(tmp_path / name))])
