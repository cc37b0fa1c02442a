"""Names of a package that are loaded when they are first used."""

import json
import subprocess
import sys
from types import ModuleType

import pytest

import nmt
import nmt.analysis
import smt_bridge
from nmt import lazy


def test_a_name_is_that_of_its_module() -> None:
    getattribute, listed = lazy.names("nmt", {"loads": "json", "Decoder": "json.decoder"})
    assert getattribute("loads") is json.loads and "Decoder" in listed() and "loads" in listed()
    with pytest.raises(AttributeError, match="module 'nmt' has no attribute 'nowhere'"):
        getattribute("nowhere")


@pytest.mark.parametrize("package", [nmt, smt_bridge, nmt.analysis], ids=lambda package: package.__name__)
def test_public_names_are_there_and_listed(package: ModuleType) -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None and name in dir(package)


def test_nothing_is_loaded_before_it_is_used() -> None:
    """In a process of its own, since this one has loaded everything."""
    code = "import sys; import nmt, smt_bridge; print('torch' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
