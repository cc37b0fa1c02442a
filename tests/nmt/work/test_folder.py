"""Where a job lies, and who holds it."""

import platform
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.io import locks
from nmt.work import folder
from nmt.work import folder as job_folder

# ---- test folder -------------------------------------------------------------------------------------------


def test_a_job_lies_beside_its_output(tmp_path: Path) -> None:
    assert folder.job_folder_path(str(tmp_path / "table.gz")) == tmp_path / "table.gz.job"


def test_what_an_unfinished_job_was_started_with(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    assert folder.recorded_settings(output) == {}
    folder.job_folder_path(output).mkdir()
    assert folder.recorded_settings(output) == {}
    place = folder.job_folder_path(output) / folder.SETTINGS
    folder.write_settings(place, {"back_end": "eigen"})
    assert folder.recorded_settings(output) == {"back_end": "eigen"}
    place.write_text("[")
    with pytest.raises(DataError, match=r"job.json: damaged; remove .*out.job to start over"):
        folder.recorded_settings(output)


def test_two_do_not_work_on_one_output(tmp_path: Path) -> None:
    """Two on different outputs do."""
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    with (
        folder.lock_job(one, "smt-rescore"),
        folder.lock_job(other, "smt-rescore"),
        pytest.raises(UserError, match="in use by"),
        folder.lock_job(one, "smt-score-table"),
    ):
        pass
    with folder.lock_job(one, "smt-score-table"):
        pass


def test_a_job_is_resumed_with_its_own_settings_only(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    place = folder.start_job(output, {"a": 1}, "lines", resume=False)
    assert place == tmp_path / "out.job" / "lines"
    place.write_text("results")
    with pytest.raises(ConfigError, match="--resume continues it"):
        folder.start_job(output, {"a": 1}, "lines", resume=False)
    with pytest.raises(ConfigError, match=r"other settings \(a\)"):
        folder.start_job(output, {"a": 2}, "lines", resume=True)
    assert folder.start_job(output, {"a": 1}, "lines", resume=True).read_text() == "results"


def test_a_job_without_results_leaves_nothing(tmp_path: Path) -> None:
    """Whatever it stopped at, the next one may have other settings. One with results stays."""
    output = str(tmp_path / "deep" / "out")

    def start(settings: dict[str, object], results: str) -> None:
        with folder.lock_job(output, "smt-rescore"):
            place = folder.start_job(output, settings, "lines", resume=False)
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
    assert (folder.job_folder_path(output) / "lines").read_text() == "results"


def test_a_job_that_was_killed_before_its_first_result(tmp_path: Path) -> None:
    """It is begun again, with whatever settings."""
    output = str(tmp_path / "out")
    place = folder.start_job(output, {"a": 1}, "lines", resume=False)
    (place.parent / "output").write_text("half a line")
    for resume in (False, True):
        folder.start_job(output, {"a": 2}, "lines", resume=resume)
        assert folder.recorded_settings(output) == {"a": 2}


def test_results_without_settings_are_none_of_a_job(tmp_path: Path) -> None:
    """What a start that was killed before it wrote its settings may have left."""
    (tmp_path / "out.job").mkdir()
    (tmp_path / "out.job" / "lines").touch()
    assert not folder.start_job(str(tmp_path / "out"), {}, "lines", resume=True).exists()


# ---- test begun --------------------------------------------------------------------------------------------
# The settings of a piece of work that may be resumed.


def test_what_is_written_is_read(tmp_path: Path) -> None:
    place = tmp_path / "settings.json"
    assert job_folder.read_settings(place) is None
    job_folder.write_settings(place, {"shard": (1, 2), "name": "é"})
    assert job_folder.read_settings(place) == {"shard": [1, 2], "name": "é"}


def test_a_start_that_was_killed_can_be_repeated(tmp_path: Path) -> None:
    """Settings are written under another name first; a kill at that moment leaves them there."""
    folder = tmp_path / "work"
    assert job_folder.is_ours(folder, "settings.json")
    folder.mkdir()
    for name in (locks.FILE, "settings.json.part12-1"):
        (folder / name).touch()
        assert job_folder.is_ours(folder, "settings.json")
    (folder / "novel.txt").touch()
    assert not job_folder.is_ours(folder, "settings.json")
    (folder / "settings.json").touch()
    assert job_folder.is_ours(folder, "settings.json")
    assert not job_folder.is_ours(folder / "novel.txt", "settings.json")


def test_changes_are_named() -> None:
    before = {"shard": [1, 2], "a": 1, "gone": 3}
    assert job_folder.changed_settings(before, {"shard": (1, 2), "a": 1}) == []
    assert job_folder.changed_settings(before, {"shard": (1, 3), "a": 1, "new": None, "other": 0}) == [
        "shard",
        "other",
    ]


# ---- test contents -----------------------------------------------------------------------------------------
# Files that have to be the same wherever a job is computed.


def test_the_same_files_are_accepted_and_others_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(name).write_text(name)
    found = folder.file_digests(["a", tmp_path / "b"])
    assert list(found) == [str(tmp_path / "a"), str(tmp_path / "b")]
    folder.check_digests(found)
    Path("b").write_text("c")
    with pytest.raises(DataError, match=f"b: differs on {platform.node()}"):
        folder.check_digests(found)
    Path("a").unlink()
    with pytest.raises(DataError, match=f"a: cannot read: No such file or directory on {platform.node()}; "):
        folder.check_digests(found)
