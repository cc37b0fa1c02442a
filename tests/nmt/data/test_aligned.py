"""Windows of aligned pairs, by hand and one by one; the corpus that holds them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.affiliation import (
    BEYOND,
    LONGEST,
    PHRASE,
    SENTENCE,
    AlignedPair,
    Shape,
    affiliate_pair,
    affiliations,
    affiliations_by_phrase,
    fewest_phrases,
    mirror_pair,
    source_windows,
    target_contexts,
)
from nmt.data.aligned import AlignedStream, make_aligned_batch
from nmt.data.batches import BatchStream
from nmt.data.binarized import binarize_aligned, open_corpus
from nmt.errors import DataError
from nmt.formats.pharaoh import Links
from nmt.text.vocab import EOS, UNK, Vocab

# ---- test aligned ------------------------------------------------------------------------------------------

A, B, C, X, Y = 3, 4, 5, 6, 7
TRIPLES = [(["a", "b", "c"], ["x", "y"], [0, 2]), (["b"], ["y", "x", "z"], [0, 0, 0]), (["c"], [], [])]


def test_the_picture_of_the_module() -> None:
    batch = make_aligned_batch([AlignedPair([A, B, C], [X, Y], [0, 2])], Shape(3, 3))
    assert batch.words.tolist() == [X, Y, EOS]
    assert batch.contexts.tolist() == [[BEYOND, BEYOND], [BEYOND, X], [X, Y]]
    assert batch.windows.tolist() == [[BEYOND, A, B], [B, C, EOS], [C, EOS, BEYOND]]
    assert (batch.lengths, batch.sentences, batch.target_tokens) == ([3], 1, 3)


@pytest.mark.parametrize(("order", "window"), [(2, 1), (3, 5), (4, 11)])
def test_windows_are_those_of_each_word(order: int, window: int) -> None:
    rng = np.random.default_rng(window)
    pairs = []
    for _ in range(20):
        words, other = rng.integers(3, 9, rng.integers(1, 8)), rng.integers(3, 9, rng.integers(0, 8))
        pairs.append(AlignedPair(words, other, rng.integers(0, len(words), len(other))))
    batch, row, half = make_aligned_batch(pairs, Shape(order, window)), 0, window // 2
    for source, target, affiliation in pairs:
        for place, word in enumerate([*target, EOS]):
            before = [target[at] if at >= 0 else BEYOND for at in range(place - order + 1, place)]
            center = affiliation[place] if place < len(target) else len(source)
            line = dict(enumerate([*source, EOS]))
            around = [line.get(at, BEYOND) for at in range(center - half, center + half + 1)]
            assert batch.contexts[row].tolist() == before and batch.windows[row].tolist() == around
            assert batch.words[row] == word
            row += 1
    assert row == batch.target_tokens == sum(batch.lengths)


def test_from_right_to_left() -> None:
    """The end symbols stand at the left end; what belongs to the source's end symbol still does."""
    pairs = [AlignedPair([A, B, C], [X, Y], [0, 1]), AlignedPair([A], [X, Y], [1, 0])]
    batch = make_aligned_batch(pairs, Shape(3, 3, backward=True))
    assert batch.words.tolist() == [Y, X, EOS, Y, X, EOS] and batch.lengths == [3, 3]
    assert batch.contexts[:3].tolist() == [[BEYOND, BEYOND], [BEYOND, Y], [Y, X]]
    end = [A, EOS, BEYOND]
    assert batch.windows[:3].tolist() == [[C, B, A], [B, A, EOS], end]
    assert batch.windows[3:].tolist() == [[BEYOND, A, EOS], end, end]
    empty = mirror_pair(AlignedPair([], [X], [0]))
    assert list(empty.affiliation) == [0]
    assert all(
        list(a) == list(b)
        for pair in pairs
        for a, b in zip(pair, mirror_pair(mirror_pair(pair)), strict=True)
    )


def test_an_empty_side() -> None:
    assert source_windows([], 3).tolist() == [[BEYOND, EOS, BEYOND]]
    assert target_contexts([], 3).tolist() == [[BEYOND, BEYOND]]


def test_a_corpus_keeps_affiliations(tmp_path: Path) -> None:
    source, target = Vocab({"a": 2, "b": 1, "c": 1}, 9), Vocab({"x": 2, "y": 1}, 9)
    report = binarize_aligned(TRIPLES, source, target, tmp_path / "c", 5, "s")
    assert (report.kept, report.empty) == (2, 1)
    corpus = open_corpus(tmp_path / "c", len(source), len(target))
    stream = AlignedStream(corpus, 1, 1, 1, Shape(2, 1))
    found = {
        (tuple(batch.words.tolist()), tuple(batch.windows[:, 0].tolist())) for batch in stream.batches(0)
    }
    assert found == {((3, 4, EOS), (3, 5, EOS)), ((4, 3, UNK, EOS), (4, 4, 4, EOS))}
    plain = [rows.tolist() for rows in BatchStream(corpus, 1, 1, 1).rows(3)]
    assert [rows.tolist() for rows in stream.rows(3)] == plain, (
        "the order of sentences is that of translators"
    )


def test_a_damaged_corpus(tmp_path: Path) -> None:
    vocab = Vocab({"a": 1}, 9)
    binarize_aligned(TRIPLES, vocab, vocab, tmp_path, 5, "s")
    (tmp_path / "affiliation.offsets").write_bytes(b"\0" * 24)
    with pytest.raises(DataError, match="affiliation"):
        open_corpus(tmp_path, len(vocab), len(vocab))


# ---- test affiliation --------------------------------------------------------------------------------------
# Affiliations by hand, and against the rules written word by word.


def test_the_rules_of_the_paper() -> None:
    assert affiliations([(2, 0), (0, 1)], 3, 2) == [2, 0], "one link"
    assert affiliations([(1, 0), (4, 0), (5, 0)], 6, 1) == [4], "the middle one of three"
    assert affiliations([(1, 0), (3, 0), (4, 0), (5, 0)], 6, 1) == [3], "of four the second"
    assert affiliations([(5, 0), (1, 0)], 6, 1) == [1], "of two the first, in any order"
    assert affiliations([(3, 0), (1, 2)], 4, 3) == [3, 1, 1], "without links: of two neighbors the right one"
    assert affiliations([(3, 0), (1, 4)], 4, 6) == [3, 3, 1, 1, 1, 1], "the nearest, before and behind"
    assert affiliations([], 3, 3) == [0, 1, 2] and affiliations([], 2, 4) == [0, 0, 1, 1]
    assert affiliations([], 5, 1) == [2] and affiliations([], 0, 2) == [0, 0] and affiliations([], 3, 0) == []


def naive(links: set[tuple[int, int]], source: int, target: int) -> list[int]:
    def own(b: int) -> int | None:
        found = [a for a in range(source) if (a, b) in links]
        while len(found) > 2:
            found = found[1:-1]
        return found[0] if found else None

    result = []
    for b in range(target):
        candidates = [(own(place), place) for d in range(target + 1) for place in (b + d, b - d)]
        there = [a for a, place in candidates if 0 <= place < target and a is not None]
        result.append(there[0] if there else int((b + 0.5) * source / target))
    return result


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Links, int, int]:
    source, target = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    points = st.tuples(st.integers(0, source - 1), st.integers(0, target - 1))
    return draw(st.frozensets(points, max_size=12)), source, target


@given(pairs())
def test_affiliations_are_those_of_the_rules(pair: tuple[Links, int, int]) -> None:
    links, source, target = pair
    assert affiliations(links, source, target) == naive(set(links), source, target)
    assert affiliate_pair(links, source, target, SENTENCE) == naive(set(links), source, target)


@given(pairs())
def test_phrases_cover_the_target_and_cut_no_link(pair: tuple[Links, int, int]) -> None:
    links, source, target = pair
    phrases = fewest_phrases(links, source, target)
    if phrases:
        covered = [word for _, (begin, end) in phrases for word in range(begin, end + 1)]
        assert covered == list(range(target))
        for (first, last), (begin, end) in phrases:
            assert last - first < LONGEST and end - begin < LONGEST
            inside = [(first <= a <= last, begin <= b <= end) for a, b in links]
            assert any(map(all, inside)) and all(a == b for a, b in inside)
        found = affiliate_pair(links, source, target, PHRASE)
        assert found == affiliations_by_phrase(links, phrases, target)
        for b, place in enumerate(found):
            if any(word == b for _, word in links):
                assert place == affiliations(links, source, target)[b], "links lie inside a phrase"
    else:
        assert affiliate_pair(links, source, target, PHRASE) == affiliations(links, source, target)


def test_a_phrase_keeps_its_words_to_itself() -> None:
    """The word without links is nearer to one of another phrase."""
    assert affiliations([(0, 0), (3, 3)], 4, 4) == [0, 0, 3, 3]
    assert affiliations_by_phrase([(0, 0), (3, 3)], [((0, 1), (0, 2)), ((3, 3), (3, 3))], 4) == [0, 0, 0, 3]
    assert affiliations_by_phrase([(0, 0)], [((0, 0), (0, 0)), ((1, 2), (1, 2))], 3) == [0, 1, 2], (
        "a diagonal"
    )


def test_few_long_phrases_rather_than_many_short_ones() -> None:
    straight = frozenset((word, word) for word in range(9))
    assert sorted(end - begin + 1 for _, (begin, end) in fewest_phrases(straight, 9, 9)) == [2, 7]
    crossed = frozenset((8 - word, word) for word in range(9))
    assert len(fewest_phrases(crossed, 9, 9)) == 2
    assert fewest_phrases(frozenset([(0, 0), (8, 0)]), 9, 1) == [], "more words than a phrase may have"
