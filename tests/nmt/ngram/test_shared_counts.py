"""N-grams that several workers count are those of one."""

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nmt import files
from nmt.cli import ngram
from nmt.errors import DataError
from nmt.jobs.config import ExecutorConfig
from nmt.jobs.stages import Place
from nmt.ngram import shared_counts
from nmt.ngram.counting import count, numbered
from nmt.ngram.shared_counts import Settings, count_text
from tests.nmt.jobs import clusters


def write(folder: Path, seed: int = 1, lines: int = 60) -> str:
    """Empty lines, <unk>, words that are new late."""
    rng = random.Random(seed)
    text = [
        " ".join(rng.choice(["a", "b", "<unk>", f"w{line}"]) for _ in range(line % 8))
        for line in range(lines)
    ]
    files.write_text(folder / "text", text)
    return str(folder / "text")


def place(folder: Path, resume: bool = False) -> Place:
    return Place(folder / "job", "nmt-ngram", resume)


def assert_same(path: str, order: int, executor: ExecutorConfig, words: int, resume: bool = False) -> None:
    text = numbered([files.split_words(line) for line in files.read_lines(path)])
    expected = count(text, order)
    folder = Path(path).parent
    vocabulary, found = count_text(path, Settings(order), executor, place(folder, resume), words)
    assert vocabulary == text.words and len(found) == len(expected) == order
    for one, other in zip(found, expected, strict=True):
        for name in ("keys", "raw", "suffix", "begins"):
            here, there = getattr(one, name), getattr(other, name)
            assert here.dtype == there.dtype and np.array_equal(here, there), name
        assert one.vocab_size == other.vocab_size
    assert not (folder / "job").exists()


@pytest.mark.parametrize(("order", "words"), [(1, 20), (2, 1), (4, 50), (3, 10_000)])
def test_shards_change_nothing(order: int, words: int, tmp_path: Path) -> None:
    assert_same(write(tmp_path), order, ExecutorConfig(), words)


@pytest.mark.parametrize("lines", [["a"], ["a b"] * 30, ["", "a", "", ""], ["<unk>"]])
def test_odd_texts(lines: list[str], tmp_path: Path) -> None:
    files.write_text(tmp_path / "text", lines)
    assert_same(str(tmp_path / "text"), 3, ExecutorConfig(), 3)


@pytest.mark.parametrize("lines", [[], ["", ""]])
def test_no_words(lines: list[str], tmp_path: Path) -> None:
    files.write_text(tmp_path / "text", lines)
    with pytest.raises(DataError, match="no words to estimate a language model from"):
        count_text(str(tmp_path / "text"), Settings(3), ExecutorConfig(), place(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_symbols_are_refused_with_their_line(tmp_path: Path) -> None:
    files.write_text(tmp_path / "text", ["a"] * 20 + ["b </s>"])
    with pytest.raises(DataError, match="line 21: the text contains </s>"):
        count_text(str(tmp_path / "text"), Settings(2), ExecutorConfig(), place(tmp_path), words=3)
    vocabulary, _ = count_text(str(tmp_path / "text"), Settings(2, True), ExecutorConfig(), place(tmp_path))
    assert vocabulary[3:] == ["a", "b"]


def test_it_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path)

    def stop(worker: shared_counts.Worker, task: int) -> list[bytes]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setitem(shared_counts.STAGES, shared_counts.SUM, stop)
        assert_same(path, 3, ExecutorConfig(), 50)
    damaged = tmp_path / "job" / shared_counts.COUNT / "00001"
    damaged.write_bytes(damaged.read_bytes()[:-8])
    assert_same(path, 3, ExecutorConfig(), 50, resume=True)


@pytest.mark.parametrize("estimator", ["own", "add-k"])
def test_the_command_writes_the_same_model(estimator: str, tmp_path: Path) -> None:
    path = write(tmp_path)
    given = ["-i", path, "--order", "3", "--discount-fallback", "--estimator", estimator, "-q"]
    assert ngram.main([*given, "-o", str(tmp_path / "one")]) == 0
    assert ngram.main([*given, "-o", str(tmp_path / "many"), "--work", str(tmp_path / "job")]) == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "many").read_bytes()


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with clusters.cluster(tmp_path_factory.mktemp("cluster")) as where:
        yield where


@pytest.mark.ci
def test_processes_and_a_cluster(two: str, tmp_path: Path) -> None:
    path = write(tmp_path)
    assert_same(path, 4, ExecutorConfig(workers=2), 50)
    assert_same(path, 4, ExecutorConfig(cluster=two), 50)
