"""Shared by the tests of this package."""

import shutil
from pathlib import Path

import pytest

from tests.smt_bridge.hybrid.systems import add_student, train


@pytest.fixture(scope="session")
def hybrid_system(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hybrid system of ten pairs of sentences, truecased, without networks."""
    return train(tmp_path_factory.mktemp("hybrid") / "system")


@pytest.fixture(scope="session")
def system_with_student(hybrid_system: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the hybrid system that has a student, which torch computes."""
    folder = tmp_path_factory.mktemp("student") / "system"
    return add_student(shutil.copytree(hybrid_system, folder, ignore=shutil.ignore_patterns("build")))
