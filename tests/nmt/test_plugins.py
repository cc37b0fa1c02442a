"""NMT_PLUGINS: modules of the user's own."""

import json
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


def test_a_module_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plugins.VARIABLE, "no_such_module")
    with pytest.raises(ConfigError, match=r"NMT_PLUGINS: no_such_module: .*PYTHONPATH"):
        plugins.load()
