"""Finished work on disk, what it belongs to, and who holds it."""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.io import files, locks, manifest
from nmt.work import store
from nmt.work.store import ChunkRecords, Step, Store, run_steps

# ---- folder ------------------------------------------------------------------------------------------------


def test_a_job_lies_beside_its_output(tmp_path: Path) -> None:
    assert store.job_folder_path(str(tmp_path / "table.gz")) == tmp_path / "table.gz.job"


def test_what_an_unfinished_job_was_started_with(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    assert store.recorded_settings(output) == {}
    store.job_folder_path(output).mkdir()
    assert store.recorded_settings(output) == {}
    place = store.job_folder_path(output) / store.SETTINGS
    store.write_settings(place, {"back_end": "eigen"})
    assert store.recorded_settings(output) == {"back_end": "eigen"}
    place.write_text("[")
    with pytest.raises(DataError, match=r"job.json: damaged; remove .*out.job to start over"):
        store.recorded_settings(output)


def test_two_do_not_work_on_one_output(tmp_path: Path) -> None:
    """Two on different outputs do."""
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    with (
        store.lock_job(one, "smt-rescore"),
        store.lock_job(other, "smt-rescore"),
        pytest.raises(UserError, match="in use by"),
        store.lock_job(one, "smt-score-table"),
    ):
        pass
    with store.lock_job(one, "smt-score-table"):
        pass


def test_a_job_is_resumed_with_its_own_settings_only(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    place = store.start_job(output, {"a": 1}, "lines", resume=False)
    assert place == tmp_path / "out.job" / "lines"
    place.write_text("results")
    with pytest.raises(ConfigError, match="--resume continues it"):
        store.start_job(output, {"a": 1}, "lines", resume=False)
    with pytest.raises(ConfigError, match=r"other settings \(a\)"):
        store.start_job(output, {"a": 2}, "lines", resume=True)
    assert store.start_job(output, {"a": 1}, "lines", resume=True).read_text() == "results"


def test_a_job_without_results_leaves_nothing(tmp_path: Path) -> None:
    """Whatever it stopped at, the next one may have other settings. One with results stays."""
    output = str(tmp_path / "deep" / "out")

    def start(settings: dict[str, object], results: str) -> None:
        with store.lock_job(output, "smt-rescore"):
            place = store.start_job(output, settings, "lines", resume=False)
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
    assert (store.job_folder_path(output) / "lines").read_text() == "results"


def test_a_job_that_was_killed_before_its_first_result(tmp_path: Path) -> None:
    """It is begun again, with whatever settings."""
    output = str(tmp_path / "out")
    place = store.start_job(output, {"a": 1}, "lines", resume=False)
    (place.parent / "output").write_text("half a line")
    for resume in (False, True):
        store.start_job(output, {"a": 2}, "lines", resume=resume)
        assert store.recorded_settings(output) == {"a": 2}


def test_results_without_settings_are_none_of_a_job(tmp_path: Path) -> None:
    """What a start that was killed before it wrote its settings may have left."""
    (tmp_path / "out.job").mkdir()
    (tmp_path / "out.job" / "lines").touch()
    assert not store.start_job(str(tmp_path / "out"), {}, "lines", resume=True).exists()


# ---- settings ----------------------------------------------------------------------------------------------
# The settings of a piece of work that may be resumed.


def test_what_is_written_is_read(tmp_path: Path) -> None:
    place = tmp_path / "settings.json"
    assert store.read_settings(place) is None
    store.write_settings(place, {"shard": (1, 2), "name": "é"})
    assert store.read_settings(place) == {"shard": [1, 2], "name": "é"}
    assert store.read_settings(place / "settings.json") is None, "the folder is a file"


def test_a_start_that_was_killed_can_be_repeated(tmp_path: Path) -> None:
    """Settings are written under another name first; a kill at that moment leaves them there."""
    folder = tmp_path / "work"
    assert store.is_ours(folder, "settings.json")
    folder.mkdir()
    for name in (locks.FILE, "settings.json.part12-1"):
        (folder / name).touch()
        assert store.is_ours(folder, "settings.json")
    (folder / "novel.txt").touch()
    assert not store.is_ours(folder, "settings.json")
    (folder / "settings.json").touch()
    assert store.is_ours(folder, "settings.json")
    assert not store.is_ours(folder / "novel.txt", "settings.json")


def test_changes_are_named() -> None:
    before = {"shard": [1, 2], "a": 1, "gone": 3}
    assert store.changed_settings(before, {"shard": (1, 2), "a": 1}) == []
    assert store.changed_settings(before, {"shard": (1, 3), "a": 1, "new": None, "other": 0}) == [
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
    found = store.file_digests(["a", tmp_path / "b"])
    assert list(found) == [str(tmp_path / "a"), str(tmp_path / "b")]
    store.check_digests(found)
    Path("b").write_text("c")
    with pytest.raises(DataError, match=f"b: differs on {platform.node()}"):
        store.check_digests(found)
    Path("a").unlink()
    with pytest.raises(DataError, match=f"a: cannot read: No such file or directory on {platform.node()}; "):
        store.check_digests(found)


# ---- finished files ----------------------------------------------------------------------------------------


def test_a_file_is_whole_or_missing(tmp_path: Path) -> None:
    """Whoever looks at it, and whatever happens while it is written; a folder above it is made."""
    path = tmp_path / "stage" / "00.npz"
    with pytest.raises(DataError), store.unfinished(path) as part:
        part.write_text("half")
        raise DataError("wrong")
    assert not any(path.parent.iterdir())
    with store.unfinished(path, recorded=True) as part:
        part.write_text("all")
        assert not path.exists() and part.name.startswith("00.npz.part")
    assert path.read_text() == "all" and len(list(path.parent.iterdir())) == 2
    manifest.verify(path.parent, ["00.npz"])
    with pytest.raises(UserError, match="none: cannot write"), store.unfinished(Path("/proc/none")) as part:
        part.write_text("all")


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, bool]] = []
    path = tmp_path / "a"
    monkeypatch.setattr(manifest, "sync", lambda part: synced.append((part.read_text(), path.exists())))
    with store.unfinished(path) as part:
        part.write_text("all")
    assert synced == [("all", False)] and path.exists()


@pytest.fixture
def finished(tmp_path: Path) -> Store:
    folder = tmp_path / "system" / "build"
    names = ("plan.json", "corpus/a", "corpus/b", "networks/joint/step-1.pt", "networks/done")
    for name in (*names, "corpus/a.part7-1", "networks/joint/.lock", "dev/x"):
        files.write_text(folder / name, [name])
    finished = Store(folder)
    finished.record(["plan.json"])
    finished.record(["corpus/*", "networks/**/*"])
    assert sorted(finished.entries()) == sorted(names)
    return finished


def check(finished: Store) -> list[str]:
    return finished.check(("plan.json",), top=finished.folder.parent)


def test_files_that_match_the_patterns(finished: Store) -> None:
    assert finished.recorded(("corpus/*",)) == {"corpus/a", "corpus/b"}
    assert finished.recorded(("networks/**/*",)) == {"networks/done", "networks/joint/step-1.pt"}
    assert check(finished) == [] and finished.has("corpus/a") and not finished.has("dev/x")


@pytest.mark.parametrize("name", ["corpus/a", "networks/joint/step-1.pt", "plan.json"])
@pytest.mark.parametrize("content", ["", "corpus/c\n", "other\n"])
def test_a_changed_file_is_named(finished: Store, name: str, content: str) -> None:
    top = finished.folder.parent
    again = "remove it, and the same command creates it again"
    remedy = f"remove {top} to start over" if name == "plan.json" else again
    (finished.folder / name).write_text(content)
    with pytest.raises(DataError, match=rf"{name}: was changed .*; restore it, or {remedy}$"):
        check(finished)


def test_what_no_step_makes_again_has_to_be_there(finished: Store) -> None:
    (finished.folder / "plan.json").unlink()
    with pytest.raises(DataError, match=r"plan\.json: missing; restore it"):
        check(finished)


def test_a_removed_file_is_forgotten_with_all_of_its_step(finished: Store) -> None:
    (finished.folder / "corpus" / "a").unlink()
    assert check(finished) == ["corpus/a"] and not finished.has("corpus/a")
    finished.forget(finished.recorded(("corpus/*",)))
    assert not (finished.folder / "corpus" / "b").exists() and finished.has("networks/done")
    assert check(finished) == [] and not finished.recorded(("corpus/*",))


def test_a_file_that_its_own_step_removed_is_not_missed(finished: Store) -> None:
    """Unlike one of another step. A file in a subfolder is still there, though * does not list it."""
    finished.record(["networks/*"])
    assert finished.has("networks/joint/step-1.pt")
    for name in ("corpus/a", "networks/done"):
        (finished.folder / name).unlink()
    (finished.folder / "corpus" / "c").write_text("c")
    finished.record(["corpus/*"])
    assert finished.recorded(("corpus/*",)) == {"corpus/b", "corpus/c"}
    assert check(finished) == ["networks/done"]


# ---- finished chunks ---------------------------------------------------------------------------------------
# Finished chunks on disk.


RESULTS = {0: b"first", 2: b"", 1: "é\n".encode(), 7: bytes(1000)}


def filled_records(path: Path) -> ChunkRecords:
    records = ChunkRecords(path)
    for number, result in RESULTS.items():
        records.add(number, result)
    return records


def record_contents(records: ChunkRecords) -> dict[int, bytes]:
    return {number: records.read(number) for number in range(10) if number in records}


def test_what_is_added_is_read(tmp_path: Path) -> None:
    assert (
        record_contents(filled_records(tmp_path / "lines"))
        == record_contents(ChunkRecords(tmp_path / "lines"))
        == RESULTS
    )
    assert len(ChunkRecords(tmp_path / "lines")) == 4 and len(ChunkRecords(tmp_path / "none")) == 0


def test_a_file_that_ends_anywhere_holds_its_whole_records(tmp_path: Path) -> None:
    """And goes on after them, as if it had never been longer."""
    path = tmp_path / "lines"
    filled_records(path)
    whole = path.read_bytes()
    for end in range(80):
        path.write_bytes(whole[:end])
        records = ChunkRecords(path)
        assert record_contents(records) == dict(list(RESULTS.items())[: len(records)])
        assert records.end <= end
        for number, result in list(RESULTS.items())[len(records) :]:
            records.add(number, result)
        assert path.read_bytes() == whole


def test_each_byte_is_checked(tmp_path: Path) -> None:
    """Whatever byte is damaged, the records from there on are no results."""
    path = tmp_path / "lines"
    filled_records(path)
    whole = path.read_bytes()
    for place in range(70):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        found = ChunkRecords(path)
        assert len(found) < 4 and record_contents(found) == dict(list(RESULTS.items())[: len(found)])


def test_bytes_that_were_never_written_are_no_records(tmp_path: Path) -> None:
    """A machine without power may leave a file of its new size that ends in zeros."""
    filled_records(tmp_path / "lines")
    with open(tmp_path / "lines", "ab") as stream:
        stream.write(bytes(1000))
    assert record_contents(ChunkRecords(tmp_path / "lines")) == RESULTS


def test_a_disk_that_takes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot write"):
        ChunkRecords(tmp_path / "no folder" / "lines").add(0, b"")


# ---- steps -------------------------------------------------------------------------------------------------


def test_steps_that_are_not_finished_are_taken_in_order() -> None:
    """Each is recorded as soon as its work is done; whether one is finished is asked when its turn comes."""
    seen: list[str] = []
    done = {"b"}

    @contextmanager
    def around(step: Step[list[int]]) -> Iterator[None]:
        seen.append(f"<{step.name}")
        yield
        seen.append(f"{step.name}>")

    def record(step: Step[list[int]]) -> None:
        seen.append(f"record {step.name}")
        done.update(step.files)

    job: list[int] = []
    steps: list[Step[list[int]]] = [Step(name, name, lambda job: job.append(1), ("c",)) for name in "abcd"]
    run_steps(steps, job, lambda step: step.name in done, record, around)
    assert job == [1, 1] and seen == ["<a", "record a", "a>", "<d", "record d", "d>"]
