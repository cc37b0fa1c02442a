"""Counts of n-grams against a naive count."""

import errno
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from nmt.cli import ngram
from nmt.errors import DataError
from nmt.io import files, mapped
from nmt.ngram import counting, disk_counts, estimators, trie_build
from nmt.ngram.counting import (
    CountSettings,
    NgramCounts,
    count_ngrams,
    count_text,
    number_text,
    safe_log10,
    statistics,
)
from nmt.ngram.text_scorer import MINUS_ALL
from nmt.work.executors import ExecutorConfig
from nmt.work.stages import SharedFolder
from tests.conftest import file_size_limit, refusal
from tests.nmt.ngram.test_estimators import some_text
from tests.nmt.work import clusters

# ---- test counting -----------------------------------------------------------------------------------------


def test_counts_are_those_of_a_naive_count() -> None:
    sentences = some_text()
    text = number_text(map(" ".join, sentences))
    lines = [("<s>", *words, "</s>") for words in sentences]
    above: list[tuple[str, ...]] = [()]
    for n, here in enumerate(count_ngrams(text, 4), 1):
        last = (here.keys % len(text.words)).tolist()
        grams = [(*above[parent], text.words[word]) for parent, word in zip(here.parents, last, strict=True)]
        naive = Counter(line[at : at + n] for line in lines for at in range(len(line) - n + 1))
        assert {gram: raw for gram, raw in zip(grams, here.raw.tolist(), strict=True) if raw} == naive
        assert here.begins.tolist() == [gram[0] == "<s>" for gram in grams]
        if n > 1:
            assert [above[row] for row in here.suffix] == [gram[1:] for gram in grams]
        above = grams


def test_texts_without_words() -> None:
    with pytest.raises(DataError, match="no words to estimate"):
        number_text(["", " \t"])
    with pytest.raises(DataError, match="line 2: the text contains <s>,"):
        number_text(["a", "b </s> <s>"])
    assert number_text(["a </s>"], skip_symbols=True).words == ["<unk>", "<s>", "</s>", "a"]


def test_words_are_numbered_in_order_of_appearance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stands between them, in blocks of lines, of which the last is not full."""
    monkeypatch.setattr(counting, "LINES", 7)
    lines = [f" {words[0]}\t{' '.join(words)}  " if words else "" for words in some_text(3, 30)]
    lines += ["\u2028 <unk>\r \x0c", "</s> a <s> <unk>"]
    naive, flat = {"<unk>": 0, "<s>": 1, "</s>": 2}, []
    for line in lines:
        words = [word for word in files.split_words(line) if word not in ("<s>", "</s>")]
        flat += [1, *(naive.setdefault(word, len(naive)) for word in words), 2]
    text = number_text(lines, skip_symbols=True)
    assert text.words == list(naive) and text.ids.tolist() == flat
    with pytest.raises(DataError, match=f"line {len(lines)}: the text contains <s>"):
        number_text(lines)


@pytest.mark.parametrize("highest", [5, 2**62], ids=["packed", "large"])
def test_distinct_keys_are_those_of_numpy(highest: int) -> None:
    keys = np.random.default_rng(1).integers(0, highest, 200)
    keys[50:100] = keys[:50]
    expected = np.unique(keys, return_inverse=True, return_counts=True)
    for ours, theirs in zip(counting.distinct(keys), expected, strict=True):
        assert ours.tolist() == theirs.tolist()
    assert [part.tolist() for part in counting.distinct(keys[:0])] == [[], [], []]


def test_logarithms_of_nothing() -> None:
    assert safe_log10(np.array([0.0, 0.01])).tolist() == [MINUS_ALL, -2.0]


# ---- test statistics ---------------------------------------------------------------------------------------
# The statistics of n-grams are those of a naive count.


def test_equal_to_a_naive_count() -> None:
    text, other = some_text(1), [*some_text(2, 50), [], ["never", "never"]]

    def occurrences(sentences: list[list[str]], n: int) -> list[tuple[str, ...]]:
        lines = [("<s>", *words, "</s>") for words in sentences]
        found = [line[at : at + n] for line in lines for at in range(len(line) - n + 1)]
        return [gram for gram in found if gram != ("<s>",)]

    for n, row in enumerate(statistics(text, 5, other), 1):
        here, there = Counter(occurrences(text, n)), occurrences(other, n)
        assert (row.words, row.occurrences, row.distinct) == (n, sum(here.values()), len(here))
        assert row.once == pytest.approx(sum(count == 1 for count in here.values()) / len(here))
        assert row.unseen == pytest.approx(sum(gram not in here for gram in there) / len(there))


def test_a_short_text_without_another() -> None:
    found = statistics([["a", "b", "a"]], 6)
    assert [(row.distinct, row.once, row.unseen) for row in found] == [
        (3, 2 / 3, None), (4, 1, None), (3, 1, None), (2, 1, None), (1, 1, None), (0, 0, None)
    ]  # fmt: skip


# ---- test shared counts ------------------------------------------------------------------------------------
# N-grams that several workers count are those of one.


def write_text(folder: Path, seed: int = 1, lines: int = 60) -> str:
    """Empty lines, <unk>, words that are new late."""
    rng = random.Random(seed)
    text = [
        " ".join(rng.choice(["a", "b", "<unk>", f"w{line}"]) for _ in range(line % 8))
        for line in range(lines)
    ]
    files.write_text(folder / "text", text)
    return str(folder / "text")


def job_place(folder: Path, resume: bool = False) -> SharedFolder:
    return SharedFolder(folder / "job", "nmt-ngram", resume)


def assert_same(path: str, order: int, executor: ExecutorConfig, words: int, resume: bool = False) -> None:
    folder = Path(path).parent
    assert_counts(
        path, *count_text(path, CountSettings(order), executor, job_place(folder, resume), words), order
    )
    assert not (folder / "job").exists()


def assert_counts(path: str, vocabulary: list[str], counts: list[NgramCounts], order: int) -> None:
    """They are those of the text, type for type."""
    text = number_text(files.read_lines(path))
    expected = count_ngrams(text, order)
    assert vocabulary == text.words and len(counts) == len(expected) == order
    for here, there in zip(counts, expected, strict=True):
        for name in ("keys", "raw", "suffix", "begins"):
            ours, theirs = getattr(here, name), getattr(there, name)
            assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs), name
        assert here.vocab_size == there.vocab_size


@pytest.mark.parametrize(("order", "words"), [(1, 20), (2, 1), (4, 50), (3, 10_000)])
def test_shards_change_nothing(order: int, words: int, tmp_path: Path) -> None:
    assert_same(write_text(tmp_path), order, ExecutorConfig(), words)


@pytest.mark.parametrize("lines", [["a"], ["a b"] * 30, ["", "a", "", ""], ["<unk>"]])
def test_odd_texts(lines: list[str], tmp_path: Path) -> None:
    files.write_text(tmp_path / "text", lines)
    assert_same(str(tmp_path / "text"), 3, ExecutorConfig(), 3)


@pytest.mark.parametrize("lines", [[], ["", ""]])
def test_no_words(lines: list[str], tmp_path: Path) -> None:
    files.write_text(tmp_path / "text", lines)
    with pytest.raises(DataError, match="no words to estimate a language model from"):
        count_text(str(tmp_path / "text"), CountSettings(3), ExecutorConfig(), job_place(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_symbols_are_refused_with_their_line(tmp_path: Path) -> None:
    files.write_text(tmp_path / "text", ["a"] * 20 + ["b </s>"])
    with pytest.raises(DataError, match="line 21: the text contains </s>"):
        count_text(str(tmp_path / "text"), CountSettings(2), ExecutorConfig(), job_place(tmp_path), words=3)
    vocabulary, _ = count_text(
        str(tmp_path / "text"), CountSettings(2, True), ExecutorConfig(), job_place(tmp_path)
    )
    assert vocabulary[3:] == ["a", "b"]


def test_it_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_text(tmp_path)

    def stop(worker: counting.CountWorker, task: int) -> list[bytes]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setitem(counting.COUNT_STAGES, counting.SUM_STAGE, stop)
        assert_same(path, 3, ExecutorConfig(), 50)
    damaged = tmp_path / "job" / counting.COUNT_STAGE / "00001"
    damaged.write_bytes(damaged.read_bytes()[:-8])
    assert_same(path, 3, ExecutorConfig(), 50, resume=True)


@pytest.mark.parametrize("estimator", ["own", "add-k"])
def test_the_command_writes_the_same_model(estimator: str, tmp_path: Path) -> None:
    path = write_text(tmp_path)
    given = ["-i", path, "--order", "3", "--discount-fallback", "--estimator", estimator, "-q"]
    assert ngram.main([*given, "-o", str(tmp_path / "one")]) == 0
    assert ngram.main([*given, "-o", str(tmp_path / "many"), "--work", str(tmp_path / "job")]) == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "many").read_bytes()


# ---- test counts on disk -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "rows"), [(1, 20), (2, 1), (4, 7), (5, 100), (3, 10_000)])
def test_runs_on_disk_change_nothing(
    order: int, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of one line and more, ranges of few n-grams and many."""
    monkeypatch.setattr(counting, "LINES", 3)
    path = write_text(tmp_path)
    (tmp_path / "runs").mkdir()
    lines = files.read_lines(path)
    words, counts = disk_counts.count_on_disk(lines, CountSettings(order), tmp_path / "runs", rows)
    assert_counts(path, words, counts, order)


@pytest.mark.parametrize("lines", [["a"], ["a b"] * 30, ["", "a", "", ""], ["<unk>"]])
def test_odd_texts_on_disk(lines: list[str], tmp_path: Path) -> None:
    files.write_text(tmp_path / "text", lines)
    (tmp_path / "runs").mkdir()
    words, counts = disk_counts.count_on_disk(lines, CountSettings(4), tmp_path / "runs", 3)
    assert_counts(str(tmp_path / "text"), words, counts, 4)


def test_refused_on_disk(tmp_path: Path) -> None:
    for lines in ([], ["", " "]):
        with pytest.raises(DataError, match="no words to estimate a language model from"):
            disk_counts.count_on_disk(lines, CountSettings(3), tmp_path, 3)
    with pytest.raises(DataError, match="line 2: the text contains </s>"):
        disk_counts.count_on_disk(["a", "b </s>"], CountSettings(3), tmp_path, 3)


@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--prune", "0", "1"],
        ["--estimator", "katz"],
        ["--compile"],
        ["--compile", "--quantize", "3", "--prune", "0", "1"],
    ],
    ids=str,
)
def test_the_command_counts_on_disk(more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same file or folder, from small blocks, and nothing else stays."""
    monkeypatch.setattr(counting, "LINES", 3)
    monkeypatch.setattr(disk_counts, "LEAST_ROWS", 20)
    monkeypatch.setenv("PATH", str(tmp_path))  # no lmplz
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "cache"))
    path = write_text(tmp_path)
    given = ["-i", path, "--order", "3", "--discount-fallback", "-q", *more]
    assert ngram.main([*given, "-o", str(tmp_path / "one")]) == 0
    monkeypatch.setattr(mapped, "ROWS", 7)
    monkeypatch.setattr(trie_build, "BLOCK", 64)
    monkeypatch.setattr(estimators, "BLOCK", 5)
    assert ngram.main([*given, "-o", str(tmp_path / "disk"), "--memory", "1e-9"]) == 0
    one, disk = ([path, *sorted(path.glob("*.npy"))] for path in (tmp_path / "one", tmp_path / "disk"))
    assert [path.name for path in one[1:]] == [path.name for path in disk[1:]]
    assert len(one) == (8 if "--compile" in more else 1)
    for expected, actual in zip(one, disk, strict=True):
        assert expected.is_dir() or expected.read_bytes() == actual.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} - {"cache"} == {"disk", "one", "text"}


def test_counts_of_a_killed_command_are_removed(tmp_path: Path) -> None:
    path = write_text(tmp_path)
    code = """
import os
from nmt.cli import ngram
from nmt.ngram import disk_counts
disk_counts.merge_runs = lambda *_: os.kill(os.getpid(), 9)
ngram.main(["-q", "-i", "text", "--memory", "1e-9", "-o", "lm"])
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    (left,) = tmp_path.glob("nmt-ngram.*")
    assert len(list(left.iterdir())) > 3
    (tmp_path / "nmt-ngram.mine").mkdir()
    given = ["-q", "-i", path, "--order", "2", "--discount-fallback", "--memory", "1e-9"]
    assert ngram.main([*given, "-o", str(tmp_path / "lm")]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"text", "lm", "nmt-ngram.mine"}


@pytest.mark.parametrize("arrays", [0, 20])
def test_a_disk_that_is_full_while_estimating(
    arrays: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While the model is estimated, or compiled after that."""
    path, made = write_text(tmp_path), count()

    def allocate(file: int, size: int) -> None:
        if next(made) >= arrays:
            raise OSError(errno.ENOSPC, "No space left on device")
        os.truncate(file, size)

    monkeypatch.setattr(mapped, "allocate", allocate)
    given = ["--order", "3", "--discount-fallback", "--memory", "1e-9", "--compile", "-q", "-i", path]
    assert ngram.main([*given, "-o", str(tmp_path / "lm")]) == 2
    assert capsys.readouterr().err.endswith("/lm: cannot write: No space left on device\n")
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_a_disk_that_is_full_while_counting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Even if only a few bytes find no room, which numpy does not notice by itself."""
    path = write_text(tmp_path)
    with file_size_limit(99):
        line = refusal(ngram.main, capsys, "-q", "-i", path, "--memory", "1e-9", "-o", tmp_path / "lm")
    assert line.endswith("/lm: cannot write: File too large\n")
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


# ---- test workers ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with clusters.cluster(tmp_path_factory.mktemp("cluster")) as where:
        yield where


@pytest.mark.ci
def test_processes_and_a_cluster(two_workers: str, tmp_path: Path) -> None:
    path = write_text(tmp_path)
    assert_same(path, 4, ExecutorConfig(workers=2), 50)
    assert_same(path, 4, ExecutorConfig(cluster=two_workers), 50)
