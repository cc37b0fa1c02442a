"""Which engine a path is."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.serve import registry
from nmt.serve.config import EngineConfig
from tests.nmt.serve.engines import TRANSLATOR


def test_runs_are_known_and_the_engines_of_smt_bridge_are_found() -> None:
    assert {"run", "hybrid", "phrase-based"} <= set(registry.kinds())


def test_a_run_and_an_ensemble() -> None:
    assert registry.load(str(TRANSLATOR), EngineConfig()).info.kind == "run"
    assert registry.load(f"{TRANSLATOR},{TRANSLATOR}", EngineConfig()).info.kind == "ensemble"


@pytest.mark.parametrize(("name", "message"), [("", "is no engine"), ("nothing", "not there")])
def test_what_is_no_engine(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{message}; expected a run directory"):
        registry.load(str(tmp_path / name), EngineConfig())


def test_an_entry_point_that_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("mine", "no_such_module:Mine", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [broken])
    with pytest.raises(ConfigError, match=r"entry point mine of nmt\.engines: .*no_such_module"):
        registry.kinds()
