"""What workers compute of an extraction, one by one; test_mapreduce.py has all of it together."""

from pathlib import Path

import numpy as np
import pytest

from nmt.errors import ConfigError
from nmt.jobs import parts
from smt_bridge.extraction import tasks
from smt_bridge.extraction.config import ExtractConfig
from tests.smt_bridge.extraction.test_tables import instances, random_corpus


def test_a_worker_without_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="all hosts have to share it"):
        tasks.begin(str(tmp_path / "job"), ("s", "t", "a"), ExtractConfig())


def test_buckets_are_of_similar_size() -> None:
    """Of phrases in the numbers that follow each other, too."""
    keys = np.stack([np.arange(10_000, dtype=np.uint64), np.zeros(10_000, np.uint64)], 1)
    sizes = np.bincount(tasks.bucket_of(keys, 10), minlength=10)
    assert sizes.min() > 850 and sizes.max() < 1150
    assert (tasks.bucket_of(keys[:, ::-1], 10) != tasks.bucket_of(keys, 10)).any()


def test_rows_keep_their_order_in_their_bucket() -> None:
    rows = np.arange(12, dtype=np.uint64).reshape(6, 2)
    found = tasks.spread(rows, np.array([2, 0, 2, 0, 0, 2]), 4)
    assert [part[:, 0].tolist() for part in found] == [[2, 6, 8], [], [0, 4, 10], []]
    assert [len(part) for part in tasks.spread(rows[:0], np.zeros(0, np.int64), 3)] == [0, 0, 0]


def test_a_sample_counts_instances() -> None:
    corpus = random_corpus(3, 20, 8)
    lines = [
        (" ".join(source), " ".join(target), " ".join(f"{i}-{j}" for i, j in links))
        for source, target, links in corpus
    ]
    expected = sum(len(instances(*pair, 5)) for pair in corpus)
    words = sum(len(source) + len(target) for source, target, _ in corpus)
    assert tasks.sample(lines, 5) == (expected, words)


def test_words_of_several_shards(tmp_path: Path) -> None:
    """A side may have none."""
    for number, (source, target) in enumerate([(b"a\nb", b"x"), (b"", b"x\ny")]):
        parts.write(tmp_path / str(number), [source, target, b'{"pairs": 2, "tokens": 5}'])
    found = tasks.read_words([tmp_path / "0", tmp_path / "1"])
    assert found.sides == ({"a", "b"}, {"x", "y"}) and (found.pairs, found.tokens) == (4, 10)
