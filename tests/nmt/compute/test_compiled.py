"""Functions with and without numba: signals wait, sources that changed are compiled anew, a search can be
stopped."""

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from nmt.compute import compiled
from nmt.compute.compiled import HAVE_NUMBA, CompiledFunction
from nmt.io import signals
from smt_bridge.decoder import automaton
from smt_bridge.decoder.search import search


def test_compiled_code_holds_signals() -> None:
    """In the main thread, the only one that sees them: an exception while numba unpacks arguments is a
    segmentation fault."""
    if not HAVE_NUMBA:
        pytest.skip("needs numba: pip install 'nmt-smt[smt]'")
    function = type("Function", (), {"_numba_type_": None, "__call__": lambda self: signals.delayed.depth})()
    call = CompiledFunction(function, function)
    call.ready = True
    assert call() == 1 and signals.delayed.depth == 0
    with ThreadPoolExecutor(1) as crew:
        assert crew.submit(call).result() == 0
    assert all(
        isinstance(function, CompiledFunction) for function in (search, automaton.score_block, automaton.step)
    )


def test_the_time_of_compiling_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function compiles those that it calls."""
    event = pytest.importorskip("numba.core.event", reason="needs numba: pip install 'nmt-smt[smt]'")
    ticks = iter((3.0, 8.0))
    monkeypatch.setattr(compiled, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    earlier = compiled.notice.seconds
    with event.trigger_event("numba:compile"), event.trigger_event("numba:compile"):
        pass
    assert compiled.notice.seconds - earlier == 5


def test_changed_sources_are_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any file of the compiled packages changes the folder of compiled code; the same files give the same."""
    files = [tmp_path / folder / "features" / "a.py" for folder in compiled.COMPILED]
    for path in files:
        path.parent.mkdir(parents=True)
        path.write_text("x = 1\n")
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "nmt" / "compute" / "compiled.py"))
    found = {compiled.cache_folder()}
    assert found == {compiled.cache_folder()}
    for path in files:
        path.write_text("x = 2\n")
        found.add(compiled.cache_folder())
    assert len(found) == 6
    assert {place and place.parent for place in found} == {tmp_path / "nmt" / "compute" / "__pycache__"}


def test_every_folder_with_compiled_functions_is_listed() -> None:
    root = Path(compiled.__file__).parents[2]
    paths = [path for name in ("nmt", "smt_bridge") for path in (root / name).rglob("*.py")]
    files = [path.relative_to(root) for path in paths if "\n@njit" in path.read_text(encoding="utf-8")]
    assert len(files) > 10
    assert all(any(path.is_relative_to(folder) for folder in compiled.COMPILED) for path in files)


def test_changed_queries_are_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search has a constant of the queries of n-gram models in its compiled code."""
    (tmp_path / "nmt" / "ngram").mkdir(parents=True)
    (queries := tmp_path / "nmt" / "ngram" / "compiled_queries.py").write_text("MIX = 1\n")
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "nmt" / "compute" / "compiled.py"))
    before = compiled.cache_folder()
    queries.write_text("MIX = 2\n")
    assert before and compiled.cache_folder() != before


def test_compiled_code_of_an_installation_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that another user has installed: the code is kept in this user's cache or, if there is none,
    in a temporary folder that only this user can open. Code that another user has compiled is never run."""
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "nmt" / "compute" / "compiled.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    own = compiled.is_own
    monkeypatch.setattr(compiled, "is_own", lambda folder: "__pycache__" not in folder.parts and own(folder))
    folder = compiled.cache_folder()
    assert folder and folder.parent == tmp_path / "cache" / "nmt-smt-compiled" and folder.is_dir()
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    user = tmp_path.stat().st_uid
    private = tmp_path / "temporary" / f"nmt-smt-compiled-{user}"
    folder = compiled.cache_folder()
    assert folder and folder.parent == private and private.stat().st_mode & 0o777 == 0o700
    private.chmod(0o755)
    assert compiled.cache_folder() is None
    private.chmod(0o700)
    private.rename(tmp_path / "mine")
    private.symlink_to(tmp_path / "mine")
    assert compiled.cache_folder() is None
    monkeypatch.setattr("tempfile.tempdir", None)
    with monkeypatch.context() as context:
        context.setattr("tempfile._candidate_tempdir_list", list)
        assert compiled.cache_folder() is None  # no folder is writable
    monkeypatch.setattr("os.geteuid", lambda: user + 1)
    assert not own(tmp_path) and not compiled.is_private(tmp_path / "mine")


def test_without_numba_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "HAVE_NUMBA", False)
    assert compiled.njit(sum) is sum


SOURCE = """
from nmt.compute.compiled import njit

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
    pytest.importorskip("numba")
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "module.py").write_text(SOURCE)
    told = []
    for _ in range(2):
        monkeypatch.setattr(compiled.notice, "logged", False)
        with caplog.at_level("INFO"):
            assert load(tmp_path / "module.py").two(40) == 42
        told.append([message for message in caplog.messages if message.startswith("compiling")])
        caplog.clear()
    assert told == [["compiling for this processor, once: up to a minute"], []]
