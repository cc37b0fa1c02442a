"""Runs that the server exports by itself: which engine a run gets, and what the cache keeps."""

import importlib.util
import logging
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from nmt.cli import serve
from nmt.errors import CheckpointError, ConfigError
from nmt.io import files
from nmt.runs import checkpoint
from nmt.runs import directory as run_directory
from nmt.runs.torch_run import TorchRun
from nmt.serve import export_cache, served
from nmt.serve.config import EngineConfig
from nmt.work.executors import Local
from smt_bridge.cli import cache as cache_command
from tests.conftest import refusal
from tests.nmt.runs.test_exported import LINES, SHAPES, make_run, model_config
from tests.nmt.serve.engines import TRANSLATOR

pytest.importorskip("ctranslate2")

from nmt.runs.exported import ExportedRun

STEP = 7


def save(shape: dict[str, object], folder: Path, step: int = STEP) -> Path:
    """Write a run to a folder, as nmt-train does."""
    [member] = make_run(**shape).members
    model = {**asdict(model_config(**shape)), "type": "transformer"}
    config = {"data": asdict(member.data), "model": model}
    with run_directory.writing(folder) as new:
        for side, text, words in (
            ("source", member.source, member.source_words),
            ("target", member.target, member.target_words),
        ):
            text.save(new, side)
            words.save(new / f"{side}.vocab")
        files.write_text(new / run_directory.CONFIG, [OmegaConf.to_yaml(OmegaConf.create(config))])
        checkpoint.save_tensors(member.model.state_dict(), run_directory.weights_path(new, step))
        run_directory.write_index(new, step, step)
        run_directory.write_version(new)
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return save(SHAPES[0], tmp_path / "run")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineConfig:
    """A cache of the test's own. Exports are made in this process, which has torch."""
    monkeypatch.setattr(export_cache, "Processes", Local)
    return EngineConfig(engine="ctranslate2", beam_size=1, cache=str(tmp_path / "cache"))


# ---- choice of the engine ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ({"type": "transformer", "output": "softmax"}, ""),
        ({"type": "transformer", "output": "classes"}, "model.output: classes: CTranslate2 has no such"),
        ({"type": "rnn"}, "model.type: rnn: CTranslate2 has no such model"),
    ],
)
def test_auto_takes_what_can_be_exported(model: dict[str, str], reason: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(OmegaConf.to_yaml({"model": model}), encoding="utf-8")
    paths, auto = [str(tmp_path)], EngineConfig(engine="auto")
    name, why = export_cache.choose_engine(paths, auto)
    assert name == ("torch" if reason else "ctranslate2") and why.startswith(reason)
    assert export_cache.choose_engine(paths, EngineConfig())[0] == "torch"
    if reason:
        with pytest.raises(ConfigError, match=f"^{re.escape(f'{tmp_path}: --engine ctranslate2: {reason}')}"):
            export_cache.choose_engine(paths, replace(auto, engine="ctranslate2"))
    else:
        assert export_cache.choose_engine(paths, replace(auto, device="cuda")) == ("torch", "--device cuda")
        assert (
            export_cache.choose_engine(paths, replace(auto, engine="ctranslate2", device="cuda"))[0]
            != "torch"
        )
        assert export_cache.choose_engine([*paths, *paths], auto) == ("torch", "CTranslate2 has no ensembles")


@pytest.mark.parametrize("text", ["model: 5", "model: [1]", "- 1", "model: [", "model: small"])
def test_a_damaged_configuration_is_left_to_the_export(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(text, encoding="utf-8")
    assert export_cache.choose_engine([str(tmp_path)], EngineConfig(engine="auto"))[0] == "ctranslate2"


def test_auto_is_torch_where_the_extra_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    name, reason = export_cache.choose_engine(["/nowhere"], EngineConfig(engine="auto"))
    assert name == "torch" and "pip install 'nmt-smt[ctranslate2]'" in reason


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, path, message in (
        ("rnn", str(TRANSLATOR), "--engine ctranslate2: model.type: rnn: CTranslate2 has no such model"),
        ("both", f"{TRANSLATOR},{TRANSLATOR}", "--engine ctranslate2: CTranslate2 has no ensembles"),
    ):
        words = [f"{name}={path}", "--port", "0", "-q", "--engine", "ctranslate2"]
        assert message in refusal(serve.main, capsys, *words)


# ---- exports -----------------------------------------------------------------------------------------------


def test_a_run_is_exported_once(run: Path, config: EngineConfig, caplog: pytest.LogCaptureFixture) -> None:
    """And again for another checkpoint, other numbers, a damaged file; each message says what happens."""
    folder = export_cache.find_or_export(run, config)
    assert ExportedRun.of(folder).translate(LINES, beam_size=1) == TorchRun.of(run).translate(
        LINES, beam_size=1
    )
    made = (folder / "model.bin").stat().st_mtime_ns
    with caplog.at_level(logging.INFO):
        assert export_cache.find_or_export(run, config) == folder
    assert f"{run}: computed by CTranslate2 in float32, from {folder}" in caplog.messages
    assert (folder / "model.bin").stat().st_mtime_ns == made
    smaller = export_cache.find_or_export(run, replace(config, quantization="int8"))
    assert smaller != folder and ExportedRun.of(smaller).members[0].settings.quantization == "int8"
    (folder / "model.bin").write_bytes(b"damaged")
    assert export_cache.find_or_export(run, config) == folder
    assert "exporting the run again" in caplog.text and ExportedRun.of(folder).translate(LINES)
    later = export_cache.find_or_export(save(SHAPES[1], run, STEP + 1), config)
    assert later != folder and ExportedRun.of(later).members[0].step == STEP + 1
    assert {entry.path for entry in export_cache.entries(Path(config.cache))} == {folder, smaller, later}


def test_what_is_old_or_unfinished_goes(
    run: Path, config: EngineConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = export_cache.find_or_export(run, config)
    unfinished, old = folder.with_name("0123.part9"), folder.with_name("0123")
    for path in (unfinished, old):
        path.mkdir()
    long_ago = time.time() - (export_cache.UNUSED_DAYS + 1) * 24 * 3600
    os.utime(old, (long_ago, long_ago))
    export_cache.find_or_export(run, config)
    assert unfinished.exists() and old.exists()  # only an export looks after the folder
    other = export_cache.find_or_export(run, replace(config, quantization="int8"))
    assert {path for path in folder.parent.iterdir() if path.is_dir()} == {folder, other}
    assert cache_command.main(["list", "--cache", config.cache]) == 0
    printed = capsys.readouterr().out
    assert str(folder) in printed and "2 exports" in printed
    assert cache_command.main(["clear", "--cache", config.cache]) == 0
    assert "2 exports" in capsys.readouterr().out and not export_cache.entries(Path(config.cache))


def test_an_export_that_fails_leaves_nothing(run: Path, config: EngineConfig) -> None:
    weights = run_directory.weights_path(run, STEP)
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=re.escape(str(weights))):
        export_cache.find_or_export(run, config)
    assert not export_cache.entries(Path(config.cache))


@pytest.mark.ci
def test_the_server_stays_without_torch(run: Path, tmp_path: Path) -> None:
    """It exports in a process of its own, and translates and reloads without torch."""
    code = (
        "import sys, threading; from nmt.serve import served\n"
        "from nmt.serve.config import EngineConfig, ServeConfig\n"
        "from nmt.serve.engine import TranslateOptions\n"
        "if __name__ == '__main__':\n"
        "    config = EngineConfig(engine='auto', beam_size=1, cache=sys.argv[2])\n"
        "    assert not served.need_torch([sys.argv[1]], config)\n"
        "    engines = served.load_engines([('one', sys.argv[1])], config, ServeConfig())\n"
        "    engines.first.reload()\n"
        "    engine = engines.first.engine\n"
        "    print(engine.translate('w1 w2', TranslateOptions(), threading.Event()).hypotheses[0].text)\n"
        "    engines.first.close()\n"
        "    sys.exit('torch' in sys.modules)\n"
    )
    (tmp_path / "program.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py", run, tmp_path / "cache"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == TorchRun.of(run).translate(["w1 w2"], beam_size=1)[0]
    assert len(export_cache.entries(tmp_path / "cache")) == 1


def test_an_exported_folder_needs_no_export(run: Path, config: EngineConfig) -> None:
    folder = export_cache.find_or_export(run, config)
    for engine in ("torch", "ctranslate2", "auto"):
        settings = replace(config, engine=engine, cache="/dev/null/none")
        assert not served.need_torch([str(folder)], settings)
        assert served.load_engine(str(folder), settings).info.beam_size == 1
