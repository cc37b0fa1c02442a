"""Where a job lies, and who holds it."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.jobs import begun, folder


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


def test_a_job_is_resumed_with_its_own_settings_only(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    place = folder.begin(output, {"a": 1}, "lines", resume=False)
    assert place == tmp_path / "out.job" / "lines"
    place.write_text("results")
    with pytest.raises(ConfigError, match="--resume continues it"):
        folder.begin(output, {"a": 1}, "lines", resume=False)
    with pytest.raises(ConfigError, match=r"other settings \(a\)"):
        folder.begin(output, {"a": 2}, "lines", resume=True)
    assert folder.begin(output, {"a": 1}, "lines", resume=True).read_text() == "results"


def test_a_job_without_results_leaves_nothing(tmp_path: Path) -> None:
    """Whatever it stopped at, the next one may have other settings. One with results stays."""
    output = str(tmp_path / "deep" / "out")

    def start(settings: dict[str, object], results: str) -> None:
        with folder.held(output, "smt-rescore"):
            place = folder.begin(output, settings, "lines", resume=False)
            (place.parent / "output").write_text("half")
            place.write_text(results)
            raise DataError("wrong")

    for number in range(2):
        with pytest.raises(DataError, match="wrong"):
            start({"a": number}, "")
        assert not any(tmp_path.iterdir())
    with pytest.raises(DataError, match="wrong"):
        start({"a": 3}, "results")
    with pytest.raises(ConfigError, match="--resume continues it"):
        start({"a": 4}, "")
    assert (folder.folder_of(output) / "lines").read_text() == "results"


def test_a_job_that_was_killed_before_its_first_result(tmp_path: Path) -> None:
    """It is begun again, with whatever settings."""
    output = str(tmp_path / "out")
    place = folder.begin(output, {"a": 1}, "lines", resume=False)
    (place.parent / "output").write_text("half a line")
    for resume in (False, True):
        folder.begin(output, {"a": 2}, "lines", resume=resume)
        assert folder.settings_of(output) == {"a": 2}


def test_results_without_settings_are_none_of_a_job(tmp_path: Path) -> None:
    """What a start that was killed before it wrote its settings may have left."""
    (tmp_path / "out.job").mkdir()
    (tmp_path / "out.job" / "lines").touch()
    assert not folder.begin(str(tmp_path / "out"), {}, "lines", resume=True).exists()
