"""Imports point down this list, never up: nmt knows nothing of smt_bridge."""

import ast
import subprocess
import sys
from collections.abc import Container
from functools import cache
from pathlib import Path

import pytest

import smt_bridge

ROOT = Path(__file__).resolve().parents[1]
LAYERS = [
    "nmt.papers",
    "smt_bridge.cli",
    "smt_bridge.build",
    "smt_bridge.nbest",
    "smt_bridge.train_system smt_bridge.moses.programs",
    "smt_bridge.train_cost smt_bridge.compiled_model smt_bridge.trained_ini",
    "smt_bridge.moses.check",
    "smt_bridge.tables smt_bridge.tuning",
    "smt_bridge.features",
    "smt_bridge.jobs",
    "smt_bridge.config",
    "smt_bridge.extraction",
    "smt_bridge.engines",
    "smt_bridge.hybrid",
    "smt_bridge.decoder",
    "smt_bridge.moses",
    "smt_bridge",
    "nmt.cli",
    "nmt.serve",
    "nmt.analysis",
    "nmt.cli.parallel_text nmt.cli.documents",
    "nmt.cli.options",
    "nmt.cli.arguments nmt.cli.messages",
    "nmt.training",
    "nmt.runs",
    "nmt.search nmt.scoring",
    "nmt.models nmt.lm",
    "nmt.layers",
    "nmt.data",
    "nmt.documents nmt.sample_corpus",
    "nmt.formats",
    "nmt.text",
    "nmt.ngram",
    "nmt.work",
    "nmt.compute",
    "nmt",
]
# The only import of nmt/papers elsewhere: its list of parts, which it has by their names.
REGISTRATION = ("nmt/plugins.py", "nmt.papers")
DEPTH = {name: depth for depth, row in enumerate(LAYERS) for name in row.split()}


def home(module: str) -> str:
    """'nmt.text.vocab' lives in 'nmt.text'"""
    return max((name for name in DEPTH if f"{module}.".startswith(f"{name}.")), key=len)


@cache
def imported(path: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the import in full"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def test_imports_point_down() -> None:
    paths = [*ROOT.glob("nmt/**/*.py"), *ROOT.glob("smt_bridge/**/*.py")]
    paths = [
        path for path in paths if path.parent.parent != ROOT or path.name != "__init__.py"
    ]  # the front doors
    assert len(paths) > 30
    for path in paths:
        here = home(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for name in imported(path):
            if (path.relative_to(ROOT).as_posix(), name) == REGISTRATION:
                continue
            if name.split(".")[0] in ("nmt", "smt_bridge"):
                there = home(name)
                assert here == there or DEPTH[there] > DEPTH[here], f"{path}: {here} must not import {there}"
                if there == "nmt.cli" and here == "smt_bridge.cli":
                    assert name.startswith("nmt.cli.jobs"), f"{path}: commands are not shared: {name}"


def test_no_module_imports_itself_by_way_of_others() -> None:
    """No cycle between modules, imports inside functions and for types included."""
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for package in ("nmt", "smt_bridge")
        for path in ROOT.glob(f"{package}/**/*.py")
        if path.name != "__init__.py"
    }
    below = {name: {home_file(target, names) for target in imported(path)} for name, path in names.items()}
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> None:
        assert name not in way, " -> ".join([*way, name])
        if name not in done:
            for target in sorted(below[name] - {"", name}):
                visit(target, [*way, name])
            done.add(name)

    for name in names:
        visit(name, [])


def home_file(target: str, names: Container[str]) -> str:
    """The module that holds an imported name; "" where it is not ours."""
    while target and target not in names:
        target = target.rpartition(".")[0]
    return target


def test_import_nmt_loads_no_torch() -> None:
    code = (
        "import sys, nmt, nmt.io.files, nmt.formats.nbest, nmt.text.vocab, nmt.data.corpus; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_import_smt_bridge_loads_nothing_heavy() -> None:
    code = "import sys, smt_bridge; sys.exit(bool({'torch', 'numba', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names_of_smt_bridge() -> None:
    assert set(smt_bridge.__all__) == set(smt_bridge.MODULES) <= set(dir(smt_bridge))
    for name in smt_bridge.__all__:
        assert getattr(smt_bridge, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = smt_bridge.Nothing
