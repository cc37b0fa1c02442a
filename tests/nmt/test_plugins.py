"""NMT_PLUGINS: modules of the user's own."""

import json
import sys
from pathlib import Path

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
