"""The public names of the package."""

import subprocess
import sys

import pytest

import smt_bridge


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import sys, smt_bridge; sys.exit(bool({'torch', 'numba', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names() -> None:
    assert set(smt_bridge.__all__) == set(smt_bridge.MODULES) <= set(dir(smt_bridge))
    for name in smt_bridge.__all__:
        assert getattr(smt_bridge, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = smt_bridge.Nothing
