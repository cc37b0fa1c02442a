"""What workers compute of an extraction, one by one; test_mapreduce.py has all of it together."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.jobs import parts, stages
from smt_bridge.extraction import tasks
from smt_bridge.extraction.config import ExtractConfig
from tests.smt_bridge.extraction.test_tables import instances, random_corpus


def test_a_worker_without_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="all hosts have to share it"):
        stages.begin(tasks.Worker(tmp_path / "job", ("s", "t", "a"), ExtractConfig()))


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
