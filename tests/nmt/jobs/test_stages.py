"""Jobs in stages: what a folder may be, what is kept, and what is computed."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.jobs import parts, stages
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.local import Local
from nmt.jobs.lost import Lost
from nmt.jobs.stages import Place, Task, held

SETTINGS = {"text": "1234"}


def place(folder: Path, resume: bool = False) -> Place:
    return Place(folder / "job", "smt-extract", resume)


def test_a_finished_job_leaves_nothing(tmp_path: Path) -> None:
    with held(place(tmp_path), SETTINGS):
        stages.check_shared(tmp_path / "job")
        stages.finish(stages.place(tmp_path / "job", "map", 1), lambda: [b"x"])
    assert list(tmp_path.iterdir()) == []


def test_an_unfinished_job_stays_but_not_after_an_error_in_the_data(tmp_path: Path) -> None:
    with pytest.raises(UserError), held(place(tmp_path), SETTINGS):
        raise UserError("a full disk")
    with pytest.raises(ConfigError, match="job: an unfinished job; --resume continues it"):
        held(place(tmp_path), SETTINGS).__enter__()
    with pytest.raises(ConfigError, match=r"was started with other settings \(text\)"):
        held(place(tmp_path, resume=True), {"text": "5678"}).__enter__()
    with pytest.raises(DataError), held(place(tmp_path, resume=True), SETTINGS):
        raise DataError("text:3: not UTF-8")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "thesis").touch()
    with pytest.raises(ConfigError, match="job: is not empty, and not the folder of a job"):
        held(place(tmp_path), SETTINGS).__enter__()


def test_what_is_whole_is_not_made_again(tmp_path: Path) -> None:
    path = stages.place(tmp_path, "map", 0)
    stages.finish(path, lambda: [b"first"])
    stages.finish(path, lambda: [b"second"])
    assert parts.read(path, 0) == b"first"
    path.write_bytes(path.read_bytes()[:-1])
    stages.finish(path, lambda: [b"third"])
    assert parts.read(path, 0) == b"third"


def test_tasks_are_computed_in_order(tmp_path: Path) -> None:
    seen: list[Task] = []
    executor: Local[Task, None] = Local(seen.append, lambda: seen.append, ExecutorConfig())
    assert list(stages.run(executor, "map", ["a", "b"])) == [0, 1]
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
        list(stages.run(executor, "map", ["a", "b", "c", "d"]))
    assert seen == [("map", 0), ("map", 3)]


def test_a_folder_that_a_worker_does_not_see(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not the folder of the job here; all hosts have to share it"):
        stages.check_shared(tmp_path / "job")
