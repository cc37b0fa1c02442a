"""Where a job lies, and who holds it."""

from pathlib import Path

import pytest

from nmt.errors import DataError, UserError
from smt_bridge.jobs import begun, folder


def test_a_job_lies_beside_its_output(tmp_path: Path) -> None:
    assert folder.folder_of(str(tmp_path / "table.gz")) == tmp_path / "table.gz.job"


def test_what_an_unfinished_job_was_started_with(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    assert folder.settings_of(output) == {}
    folder.folder_of(output).mkdir()
    assert folder.settings_of(output) == {}
    place = folder.folder_of(output) / folder.SETTINGS
    begun.write(place, {"back_end": "eigen"})
    assert folder.settings_of(output) == {"back_end": "eigen"}
    place.write_text("[")
    with pytest.raises(DataError, match=r"job.json: damaged; remove .*out.job to start over"):
        folder.settings_of(output)


def test_two_do_not_work_on_one_output(tmp_path: Path) -> None:
    """Two on different outputs do."""
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    with (
        folder.held(one, "smt-rescore"),
        folder.held(other, "smt-rescore"),
        pytest.raises(UserError, match="in use by"),
        folder.held(one, "smt-score-table"),
    ):
        pass
    with folder.held(one, "smt-score-table"):
        pass
