"""The examples in the docstrings of the Python API are true: each is run in a folder of small runs and
tables."""

import doctest
import importlib
import shutil
from pathlib import Path

import pytest

from nmt.text.pipeline import SideConfig
from smt_bridge.hybrid import folder
from smt_bridge.hybrid.folder import HybridConfig

# Modules of the public API; each has at least one example. The fixture `examples` says what they work on.
MODULES = [
    "nmt.runs.constraints",
    "nmt.runs.language_model",
    "nmt.runs.run",
    "nmt.text.sentences",
    "nmt.training.train",
    "smt_bridge.decoder.decoder",
    "smt_bridge.hybrid.decoder",
    "smt_bridge.hybrid.side",
]


@pytest.mark.ci
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module(name: str, examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    english, french = (SideConfig(language=language) for language in ("en", "fr"))
    folder.write_system(
        shutil.copytree(examples / "model", examples / "system"), HybridConfig(english, french)
    )
    monkeypatch.chdir(examples)
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.attempted and not found.failed
