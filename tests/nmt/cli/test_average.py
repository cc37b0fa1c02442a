"""nmt-average never writes into a folder that holds something."""

from pathlib import Path

import pytest

from nmt.cli.average import check_new
from nmt.errors import ConfigError


def test_only_a_new_or_empty_folder_is_taken(tmp_path: Path) -> None:
    check_new(tmp_path)
    check_new(tmp_path / "new")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="exists already; choose another name"):
        check_new(tmp_path)
