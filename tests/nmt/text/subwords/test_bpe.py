"""Merges of BPE, from a queue, against subword-nmt, which looks through all pairs for each."""

import io
import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from subword_nmt import learn_bpe

from nmt.io import files
from nmt.text.subwords.bpe import PairQueue, learn_merges
from nmt.text.tokenize import Tokenizer


@pytest.fixture(autouse=True)
def quiet_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """subword-nmt takes counts of words, draws no bar and reports nothing."""
    monkeypatch.setattr(learn_bpe, "get_vocabulary", lambda counts, *options: counts)
    monkeypatch.setattr(learn_bpe, "tqdm", lambda numbers: numbers)
    monkeypatch.setattr(learn_bpe, "sys", SimpleNamespace(stderr=io.StringIO(), version_info=(3, 11)))


def naive_merges(counts: Mapping[str, int], number: int, min_frequency: int) -> list[str]:
    codes = io.StringIO(newline="\n")
    learn_bpe.learn_bpe(dict(counts), codes, number, min_frequency, is_dict=True)
    return codes.getvalue().split("\n")[1:-1]


def check(counts: Mapping[str, int], number: int, min_frequency: int) -> int:
    """The number of merges, if both learn the same ones."""
    learned = [" ".join(pair) for pair in learn_merges(counts, number, min_frequency)]
    assert learned == naive_merges(counts, number, min_frequency)
    return len(learned)


def random_counts(seed: int) -> Iterator[Counter[str]]:
    """Words that make merges overlap, tie and meet: few letters, repetitions, odd characters."""
    rng = random.Random(seed)
    for letters in ("ab", "aab", "abcde", "a\\bé", "ab\xa0", "ab\u2028\x85", "<w/>a"):
        for words in (5, 60):
            for longest in (4, 12):
                yield Counter(
                    {
                        "".join(rng.choices(letters, k=rng.randint(1, longest))): rng.choice((1, 2, 3, 50))
                        for _ in range(words)
                    }
                )


@pytest.mark.ci
@pytest.mark.parametrize("seed", range(4))
def test_merges_of_odd_words(seed: int) -> None:
    learned = [
        check(counts, 400, min_frequency)
        for counts in random_counts(seed)
        if max(map(len, counts)) > 1
        for min_frequency in (1, 2, 6)
    ]
    assert sum(learned) > 1000


@pytest.mark.parametrize("steepness", [0.5, 1.0, 2.0])
def test_rare_pairs_are_put_aside_and_come_back(steepness: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts as steep as those of words, enough merges for several rounds."""
    rng, rounds = random.Random(5), itertools.count()
    fill = PairQueue.fill
    monkeypatch.setattr(PairQueue, "fill", lambda pairs: (next(rounds), fill(pairs)))
    counts = Counter(
        {
            "".join(rng.choices("etaoinshrdlu", weights=range(12, 0, -1), k=rng.randint(1, 9))): 1
            + int(3000 / (rank + 1) ** steepness)
            for rank in range(700)
        }
    )
    assert check(counts, 700, 2) > 300 and next(rounds) > 1


@pytest.mark.ci
@pytest.mark.parametrize("names", ["multi30k/train.en multi30k/train.fr", "tatoeba-enfr/train.fr.gz"])
def test_merges_of_real_text(names: str, nmt_data: Path) -> None:
    tokenizers = [Tokenizer("en"), Tokenizer("fr")]
    for raw in (False, True):  # raw text has no-break spaces inside words
        counts: Counter[str] = Counter()
        for name in names.split():
            for line in files.read_lines(nmt_data / name):
                counts.update(files.split_words(line) if raw else tokenizers["fr" in name[-6:]].words(line))
        assert check(dict(sorted(counts.items())), 8000, 2) == 8000


def test_no_pair_no_merge() -> None:
    assert not list(learn_merges({"a": 5, "b": 1}, 9, 1)) and not list(learn_merges({}, 9, 1))
    assert list(learn_merges({"ab": 5}, 9, 6)) == [] and list(learn_merges({"ab": 5}, 9, 5)) == [
        ("a", "b</w>")
    ]
