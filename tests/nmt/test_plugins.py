"""NMT_PLUGINS: modules of the user's own."""

import importlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt import plugins
from nmt.errors import ConfigError


def test_the_modules_that_the_variable_names_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plugin_of_a_test.py").write_text("import json\njson.plugin_of_a_test = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(plugins.VARIABLE, " plugin_of_a_test,")
    plugins.load()
    assert json.plugin_of_a_test == 1  # type: ignore[attr-defined]
    del json.plugin_of_a_test  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("x = 1\n\n1 / 0\n", r"plugin_that_fails\.py:3: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(7)\n", r"plugin_that_fails\.py:2: SystemExit: 7"),
        ("def f(:\n", r"plugin_that_fails\.py:1: SyntaxError: "),
        ("import no_such_module\n", r"plugin_that_fails\.py:1: ModuleNotFoundError: .*no_such_module"),
        ("from json import nothing_like_it\n", r"plugin_that_fails\.py:1: ImportError: "),
        ("raise Exception('two\\nlines')\n", r"plugin_that_fails\.py:1: Exception: two lines"),
    ],
)
def test_a_module_that_fails_is_one_line(
    text: str, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which names the file and line of the module's own."""
    (tmp_path / "plugin_that_fails.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(plugins.VARIABLE, "plugin_that_fails")
    monkeypatch.delitem(sys.modules, "plugin_that_fails", raising=False)
    with pytest.raises(ConfigError, match=rf"NMT_PLUGINS: .*{cause}.*; fix plugin_that_fails"):
        plugins.load()


def test_a_module_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugins.VARIABLE, "no_such_module")
    with pytest.raises(ConfigError, match=r"NMT_PLUGINS: no_such_module: .*PYTHONPATH"):
        plugins.load()


# Mistakes that show while a command runs.

CALLS = """class Base:
    def price(self, value):
        return self.cost(value) / value

class Part:
    def cost(self, value):
        return [0][value]
"""


@pytest.fixture
def caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Two modules, `plugin_base` and `plugin_part`; the second is a plugin whose class derives from that of
    the first."""
    base, part = CALLS.split("\n\n")
    (tmp_path / "plugin_base.py").write_text(base)
    part = part.replace("Part:", "Part(plugin_base.Base):")
    (tmp_path / "plugin_part.py").write_text(f"import plugin_base\n\n{part}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(plugins.VARIABLE, "plugin_part")
    for name in ("plugin_base", "plugin_part"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return SimpleNamespace(part=importlib.import_module("plugin_part").Part())


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (3, r"NMT_PLUGINS: \S+plugin_part\.py:5: Part\.cost: IndexError: list index out of range"),  # its own
        (0, r"NMT_PLUGINS: \S+plugin_part\.py:3: Part\.price: ZeroDivisionError: "),  # what it inherits
    ],
)
def test_an_error_of_a_plugin_is_explained(value: int, line: str, caller: SimpleNamespace) -> None:
    with pytest.raises((IndexError, ZeroDivisionError)) as raised:
        caller.part.price(value)
    explanation = plugins.explained(raised.value)
    assert isinstance(explanation, ConfigError)
    assert re.match(line, str(explanation))


@pytest.mark.parametrize(
    ("mistake", "line"),
    [
        (lambda part: part.worth, r"plugin_part\.py:3: AttributeError: 'Part' object has no attribute"),
        (lambda part: part.cost(1, 2), r"plugin_part\.py:3: TypeError: Part\.cost\(\) takes 2 positional"),
    ],
)
def test_so_is_what_its_class_lacks_or_does_not_take(
    mistake: Callable[[Any], object], line: str, caller: SimpleNamespace
) -> None:
    """Although no line of the plugin has run."""
    with pytest.raises((AttributeError, TypeError)) as raised:
        mistake(caller.part)
    explanation = plugins.explained(raised.value)
    assert isinstance(explanation, ConfigError)
    assert re.match(rf"NMT_PLUGINS: \S+{line}", str(explanation))


def test_other_errors_are_not(caller: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        1 / 0  # noqa: B018
    assert plugins.explained(raised.value) is raised.value
    with pytest.raises(AttributeError) as of_core:
        [].part  # type: ignore[attr-defined]  # noqa: B018
    assert plugins.explained(of_core.value) is of_core.value
    own = ConfigError("of the plugin itself")
    assert plugins.explained(own) is own
    with pytest.raises(IndexError) as of_plugin:
        caller.part.price(3)
    monkeypatch.setattr(sys, "flags", SimpleNamespace(dev_mode=True))
    assert plugins.explained(of_plugin.value) is of_plugin.value
