"""Shared by the tests of this package."""

from pathlib import Path

import pytest

from tests.smt_bridge.hybrid.systems import train


@pytest.fixture(scope="session")
def hybrid_system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hybrid system of ten pairs of sentences, truecased, without networks."""
    return train(tmp_path_factory.mktemp("hybrid") / "system")
