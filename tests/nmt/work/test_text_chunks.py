"""A text in chunks: whatever was done before, and whatever is lost, the lines are those of one run."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from nmt.errors import DataError, UserError
from nmt.work import text_chunks
from nmt.work.executors import ExecutorConfig, Local, Lost
from nmt.work.store import ChunkRecords
from nmt.work.text_chunks import Lines, TextChunk

SIZES = [3, 1, 2, 4, 1, 5]
CHUNKS = [TextChunk(sum(SIZES[:number]), size, number) for number, size in enumerate(SIZES)]


def lines_of(number: int) -> Lines:
    """Two outputs; the first has no line for the second chunk."""
    return [[f"{number}é\u2028"] * (number != 1), [str(number)]]


class Losing:
    """Computes nothing of some tasks."""

    def __init__(self, *lost: int) -> None:
        self.lost, self.asked = lost, list[int]()

    def __enter__(self) -> "Losing":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def map(self, tasks: Iterable[int]) -> Iterator[Lines | Lost]:
        for task in list(tasks):  # all are drawn before the first result
            self.asked.append(task)
            yield Lost("two workers died") if task in self.lost else lines_of(task)


def local() -> Local[int, Lines]:
    def begin() -> Callable[[int], Lines]:
        return lines_of

    return Local(lines_of, begin, ExecutorConfig())


def test_chunks_come_in_order() -> None:
    found = list(text_chunks.compute_chunks(CHUNKS, local(), "text"))
    assert [done.count for done in found] == SIZES
    assert [done.outputs for done in found] == list(map(lines_of, range(6)))


@pytest.mark.parametrize("before", [[], [0], [5], [0, 1, 2], [1, 4], [2, 3, 4, 5], list(range(6))])
def test_only_what_was_not_done_before_is_computed(before: list[int], tmp_path: Path) -> None:
    kept = ChunkRecords(tmp_path / "lines")
    for number in reversed(before):
        list(
            text_chunks.compute_chunks(
                [CHUNKS[number]], Losing(), "text", records=(single := ChunkRecords(tmp_path / "one"))
            )
        )
        kept.add(number, single.read(0))
        (tmp_path / "one").unlink()
    work = Losing()
    found = list(text_chunks.compute_chunks(CHUNKS, work, "text", ChunkRecords(tmp_path / "lines")))
    assert [done.outputs for done in found] == list(map(lines_of, range(6)))
    assert [number for number, done in enumerate(found) if done.earlier] == before
    assert work.asked == [number for number in range(6) if number not in before]


def test_what_is_lost_is_named_and_computed_by_the_next_start(tmp_path: Path) -> None:
    kept = ChunkRecords(tmp_path / "lines")
    with pytest.raises(UserError, match=r"^text: lines 4-6, 11: two workers died; .*--resume computes only"):
        list(text_chunks.compute_chunks(CHUNKS, Losing(1, 2, 4), "text", kept))
    assert len(kept) == 3
    work = Losing()
    found = list(text_chunks.compute_chunks(CHUNKS, work, "text", ChunkRecords(tmp_path / "lines")))
    assert work.asked == [1, 2, 4] and [done.outputs for done in found] == list(map(lines_of, range(6)))


def test_a_stream_ends_at_what_is_lost() -> None:
    found = text_chunks.compute_chunks(CHUNKS, Losing(2, 4), "<stdin>")
    assert [next(found).outputs for _ in range(2)] == [lines_of(0), lines_of(1)]
    with pytest.raises(UserError, match=r"^<stdin>: lines 5-6: two workers died; write to a file"):
        next(found)


def test_a_result_that_changed_on_the_disk(tmp_path: Path) -> None:
    kept = ChunkRecords(tmp_path / "lines")
    list(text_chunks.compute_chunks(CHUNKS, Losing(), "text", kept))
    (tmp_path / "lines").write_bytes(bytes(1000))
    with pytest.raises(DataError, match="lines: damaged; --resume again"):
        list(text_chunks.compute_chunks(CHUNKS, Losing(), "text", kept))
