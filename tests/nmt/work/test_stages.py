"""Jobs in stages: what a folder may be, what is kept, and what is computed."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.work import arrays, stages
from nmt.work.executors import ExecutorConfig, Local, Lost
from nmt.work.stages import Shard, SharedFolder, Task, lock_shared

# ---- test stages -------------------------------------------------------------------------------------------


SETTINGS = {"text": "1234"}


class Idle(stages.StageWorker):
    def compute_parts(self, stage: str, number: int) -> list[bytes]:
        return []


def job_place(folder: Path, resume: bool = False) -> SharedFolder:
    return SharedFolder(folder / "job", "smt-extract", resume)


def test_a_finished_job_leaves_nothing(tmp_path: Path) -> None:
    with lock_shared(job_place(tmp_path), SETTINGS):
        stages.begin_worker(Idle(tmp_path / "job"))
        stages.ensure_file(stages.task_file(tmp_path / "job", "map", 1), lambda: [b"x"])
    assert list(tmp_path.iterdir()) == []


def test_an_unfinished_job_stays_but_not_after_an_error_in_the_data(tmp_path: Path) -> None:
    with pytest.raises(UserError), lock_shared(job_place(tmp_path), SETTINGS):
        raise UserError("a full disk")
    with pytest.raises(ConfigError, match="job: has an unfinished job; --resume continues it"):
        lock_shared(job_place(tmp_path), SETTINGS).__enter__()
    with pytest.raises(ConfigError, match=r"was started with other settings \(text\)"):
        lock_shared(job_place(tmp_path, resume=True), {"text": "5678"}).__enter__()
    with pytest.raises(DataError), lock_shared(job_place(tmp_path, resume=True), SETTINGS):
        raise DataError("text:3: not UTF-8")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "thesis").touch()
    with pytest.raises(ConfigError, match="job: is not empty, and not the folder of a job"):
        lock_shared(job_place(tmp_path), SETTINGS).__enter__()


def test_what_is_whole_is_not_made_again(tmp_path: Path) -> None:
    path = stages.task_file(tmp_path, "map", 0)
    stages.ensure_file(path, lambda: [b"first"])
    stages.ensure_file(path, lambda: [b"second"])
    assert stages.read_part(path, 0) == b"first"
    path.write_bytes(path.read_bytes()[:-1])
    stages.ensure_file(path, lambda: [b"third"])
    assert stages.read_part(path, 0) == b"third"


def test_tasks_are_computed_in_order(tmp_path: Path) -> None:
    seen: list[Task] = []
    executor: Local[Task, None] = Local(seen.append, lambda: seen.append, ExecutorConfig())
    assert list(stages.run_stage(executor, "map", ["a", "b"])) == [0, 1]
    assert seen == [("map", 0), ("map", 1)]


class Losing(Local[Task, None]):
    """Tasks 1 and 2 kill their workers."""

    def map(self, tasks: Iterable[Task]) -> Iterator[Lost | None]:  # type: ignore[override]
        for task in tasks:
            yield Lost("3 workers died") if task[1] in (1, 2) else self.compute(task)


def test_lost_tasks_are_named_when_the_others_are_done() -> None:
    seen: list[Task] = []
    executor = Losing(seen.append, lambda: seen.append, ExecutorConfig())
    with pytest.raises(
        UserError, match=r"^b, c: 3 workers died; the rest is kept, --resume computes what is"
    ):
        list(stages.run_stage(executor, "map", ["a", "b", "c", "d"]))
    assert seen == [("map", 0), ("map", 3)]


def test_a_folder_that_a_worker_does_not_see(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not the folder of the job here; all hosts have to share it"):
        stages.begin_worker(Idle(tmp_path / "job"))


# ---- test parts --------------------------------------------------------------------------------------------
# Files of parts: what is read is what was written, and damage is noticed.


ROWS = np.arange(12, dtype=np.uint64).reshape(4, 3)


def written_parts(folder: Path) -> Path:
    """In a folder that does not exist yet; the rows lie in another order in memory."""
    path = folder / "stage" / "00000"
    stages.write_parts(path, [b"one", b"", np.asfortranarray(ROWS), np.zeros((0, 3), np.uint64)])
    return path


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    path = written_parts(tmp_path)
    assert stages.count_parts(path) == 4 and stages.is_complete(path)
    assert [stages.read_part(path, part) for part in (0, 1)] == [b"one", b""]
    assert (arrays.read_rows(path, 2, 3) == ROWS).all() and arrays.read_rows(path, 3, 3).shape == (0, 3)
    assert [one.name for one in path.parent.iterdir()] == ["00000"]


def test_the_same_parts_are_the_same_bytes(tmp_path: Path) -> None:
    path = written_parts(tmp_path)
    before = path.read_bytes()
    assert written_parts(tmp_path).read_bytes() == before


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    path = written_parts(tmp_path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert not stages.is_complete(path), place
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        assert not stages.is_complete(path), end
    path.write_bytes(whole + b"x")
    assert not stages.is_complete(path)
    path.write_bytes(whole)
    assert stages.is_complete(path)


def test_damage_is_one_line_for_who_reads(tmp_path: Path) -> None:
    path = written_parts(tmp_path)
    with pytest.raises(UserError, match=r"00001: missing or damaged; .* --resume"):
        stages.read_part(path.with_name("00001"), 0)
    with pytest.raises(stages.Damaged):
        stages.count_parts(tmp_path / "none")
    path.write_bytes(path.read_bytes().replace(b"one", b"two"))
    with pytest.raises(stages.Damaged, match="00000"):
        stages.read_part(path, 0)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(stages.Damaged):
        stages.read_part(path, 2)


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "stage").write_text("in the way")
    with pytest.raises(UserError, match="00000: cannot write: File exists"):
        written_parts(tmp_path)
    with pytest.raises(UserError, match="cannot write"):
        stages.write_parts(Path("/proc/none/00000"), [b"x"])


# ---- test shards -------------------------------------------------------------------------------------------
# Parallel texts in shards.


SHARD_ROWS = [("a b", "x", "0-0"), ("", "", ""), ("c", "y z", "0-1"), ("d\u2028\x0c", "w", "")]


def cut_rows(folder: Path, words: int) -> list[str]:
    for column, name in enumerate("sta"):
        text = "".join(row[column] + "\n" for row in SHARD_ROWS)
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return stages.cut_shards(folder / "job", [str(folder / name) for name in "sta"], words)


def test_what_is_cut_is_read(tmp_path: Path) -> None:
    """An empty line counts as a word; each shard knows its lines."""
    (tmp_path / "job").mkdir()
    names = cut_rows(tmp_path, 4)
    assert [name.removeprefix(f"{tmp_path}/") for name in names] == ["s: lines 1-2", "s: lines 3-4"]
    assert stages.count_shards(tmp_path / "job") == 2
    assert stages.read_shard(tmp_path / "job", 1) == Shard(3, [*SHARD_ROWS[2:]])
    assert [*stages.read_shards(tmp_path / "job")] == SHARD_ROWS


@pytest.mark.parametrize("words", [1, 1000])
def test_every_size(words: int, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    assert len(cut_rows(tmp_path, words)) == (4 if words == 1 else 1)
    assert [*stages.read_shards(tmp_path / "job")] == SHARD_ROWS


def test_an_empty_text_has_no_shards(tmp_path: Path) -> None:
    (tmp_path / "s").touch()
    assert stages.cut_shards(tmp_path, [str(tmp_path / "s")] * 2, 10) == []
    assert stages.count_shards(tmp_path) == 0 and not list(stages.read_shards(tmp_path))


def test_texts_of_unequal_length(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("a\nb\n")
    (tmp_path / "t").write_text("a\n")
    with pytest.raises(DataError, match="1 line, but"):
        stages.cut_shards(tmp_path, [str(tmp_path / "s"), str(tmp_path / "t")], 10)


# ---- test arrays -------------------------------------------------------------------------------------------
# Arrays in files of parts.


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Also where rows lie in another order in memory, and where there are none."""
    rows = np.arange(12, dtype=np.uint64).reshape(4, 3)
    path = tmp_path / "00000"
    stages.write_parts(path, [rows, np.asfortranarray(rows), rows[:0], rows[::2, 1]])
    assert (arrays.read_rows(path, 0, 3) == rows).all() and (arrays.read_rows(path, 1, 3) == rows).all()
    assert arrays.read_rows(path, 2, 3).shape == (0, 3)
    assert arrays.read_rows(path, 3, 1)[:, 0].tolist() == [1, 7]


def test_buckets_are_of_similar_size() -> None:
    """Of phrases in the numbers that follow each other, too."""
    keys = np.stack([np.arange(10_000, dtype=np.uint64), np.zeros(10_000, np.uint64)], 1)
    sizes = np.bincount(arrays.hash_buckets(keys, 10), minlength=10)
    assert sizes.min() > 850 and sizes.max() < 1150
    assert (arrays.hash_buckets(keys[:, ::-1], 10) != arrays.hash_buckets(keys, 10)).any()


def test_rows_keep_their_order_in_their_bucket() -> None:
    rows = np.arange(12, dtype=np.uint64).reshape(6, 2)
    found = arrays.split_buckets(rows, np.array([2, 0, 2, 0, 0, 2]), 4)
    assert [part[:, 0].tolist() for part in found] == [[2, 6, 8], [], [0, 4, 10], []]
    assert [len(part) for part in arrays.split_buckets(rows[:0], np.zeros(0, np.int64), 3)] == [0, 0, 0]


def test_sorted_rows_and_their_groups() -> None:
    found = np.array([[2, 1, 7], [1, 5, 8], [2, 1, 3], [1, 4, 9]], np.uint64)
    ordered = found[arrays.sorted_order(found, 2)]
    assert ordered.tolist() == [[1, 4, 9], [1, 5, 8], [2, 1, 7], [2, 1, 3]]
    assert arrays.group_starts(ordered, 2).tolist() == [0, 1, 2]
    assert arrays.group_starts(ordered, 1).tolist() == [0, 2]
