"""What is said while numba compiles."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("numba")

import numba.core.config

from smt_bridge.decoder import compiled

SOURCE = """
from smt_bridge.decoder.compiled import njit

@njit
def one(number):
    return number + 1

@njit
def two(number):
    return one(number) + 1
"""


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("compiled_by_a_test", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_one_line_before_the_first_compilation_and_none_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "module.py").write_text(SOURCE)
    told = []
    for _ in range(2):
        monkeypatch.setattr(compiled.notice, "said", False)
        with caplog.at_level("INFO"):
            assert load(tmp_path / "module.py").two(40) == 42
        told.append([message for message in caplog.messages if message.startswith("compiling")])
        caplog.clear()
    assert told == [["compiling for this processor, once: about half a minute"], []]
