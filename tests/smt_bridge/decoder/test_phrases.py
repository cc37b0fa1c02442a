"""Phrases in tries = phrases in a dictionary."""

import random
from itertools import pairwise

import numpy as np
import pytest

from smt_bridge.decoder.phrases import (
    CHUNK,
    PhraseTrie,
    WordPool,
    build_trie,
    find_spans,
    is_trie,
    joined,
    new_vocabulary,
    path_words,
    word_ids,
)

WORDS = ["a", "b", "é", "日本", "t&apos;", "z"]


def random_phrases(rng: random.Random, count: int, words: int = 5) -> list[tuple[int, ...]]:
    """Different phrases of 1 to 4 word ids."""
    return list({tuple(rng.randrange(words) for _ in range(rng.randint(1, 4))): None for _ in range(count)})


def trie_of(phrases: list[tuple[int, ...]], words: int) -> tuple[PhraseTrie, list[int]]:
    ids = np.array([word for phrase in phrases for word in phrase], np.int32)
    trie, nodes = build_trie(ids, np.cumsum([0, *map(len, phrases)]), words)
    return trie, nodes.tolist()


@pytest.mark.parametrize("seed", range(20))
def test_spans_are_those_of_a_dictionary(seed: int) -> None:
    rng = random.Random(seed)
    phrases = random_phrases(rng, rng.choice([1, 5, 60]))
    trie, nodes = trie_of(phrases, 5)
    twin = dict(zip(phrases, nodes, strict=True))
    prefixes = {phrase[:size] for phrase in phrases for size in range(1, len(phrase) + 1)}
    assert len(trie.parent) == len(prefixes) + 1 and len(set(nodes)) == len(phrases)
    for longest in (1, 3, 5):
        ids = np.array([rng.randint(-1, 5) for _ in range(rng.randint(0, 9))], np.int32)
        found = find_spans(ids, trie.children(), trie.word, longest)
        for start in range(len(ids)):
            for size in range(longest):
                span = tuple(ids[start : start + size + 1].tolist())
                node = found[start * longest + size]
                inside = start + size < len(ids)
                assert (node > 0) == (inside and span in prefixes)
                assert not inside or span not in twin or node == twin[span]


def test_phrases_are_the_paths(tmp_path: object) -> None:
    """Written and read: the words of each node, sorted within each length."""
    phrases = random_phrases(random.Random(3), 80)
    trie, nodes = trie_of(phrases, 5)
    starts = np.cumsum([0, *map(len, phrases)])
    text = path_words(np.array(nodes, np.int32), trie.parent, trie.word, starts)
    assert [tuple(text[a:b].tolist()) for a, b in pairwise(starts)] == phrases
    in_order = [phrase for _, phrase in sorted(zip(nodes, phrases, strict=True))]
    assert in_order == sorted(phrases, key=lambda phrase: (len(phrase), phrase))
    lengths = np.searchsorted(trie.levels, nodes, "right") - 1
    assert lengths.tolist() == list(map(len, phrases))


def test_a_broken_trie_is_none() -> None:
    trie, _ = trie_of(random_phrases(random.Random(4), 60), 5)
    assert is_trie(trie, 5) and not is_trie(trie, 4)
    for name in ("parent", "word"):
        for position in (0, 1, 9, len(trie.parent) - 1):
            for value in (-1, len(trie.parent)):
                broken = getattr(trie, name).copy()
                broken[position] = value
                if name == "parent" or position or value < 0:
                    assert not is_trie(trie._replace(**{name: broken}), 5)
    for levels in (trie.levels[:-1], trie.levels[1:], trie.levels + 1, trie.levels[:1]):
        assert not is_trie(trie._replace(levels=levels), 5)


def test_words_are_found_by_their_bytes() -> None:
    """Each word under its number, and no other; decoded once."""
    pool = WordPool(*joined(sorted(word.encode() for word in WORDS)))
    assert len(pool) == len(WORDS) and sorted(pool) == sorted(WORDS)
    for number, word in enumerate(pool):
        assert pool.find(word) == number and pool[number] is word
    assert all(pool.find(word) == -1 for word in ("", "A", "aa", "é ", "zz", "\U0001f600"))
    assert pool[1:3] == [pool[1], pool[2]]
    for outside in (-1, len(pool)):
        with pytest.raises(IndexError):
            pool[outside]


def test_word_ids_are_those_of_lists() -> None:
    """Over several chunks too."""
    rng = random.Random(5)
    phrases = [" ".join(rng.choices(WORDS, k=rng.randint(1, 3))).encode() for _ in range(CHUNK + 9)]
    vocabulary = new_vocabulary()
    ids, cut = word_ids(phrases, vocabulary)
    names = list(vocabulary)
    for number in (0, 1, CHUNK - 1, CHUNK, CHUNK + 8):
        assert b" ".join(names[word] for word in ids[cut[number] : cut[number + 1]]) == phrases[number]
    assert len(cut) == len(phrases) + 1 and sorted(names) == sorted(word.encode() for word in WORDS)
