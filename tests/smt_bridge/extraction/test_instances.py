"""Consistent pairs of one sentence, their packing, and the word pairs of lexical weights."""

from pathlib import Path

import numpy as np

from nmt.io import files
from smt_bridge.extraction import corpus
from smt_bridge.extraction.instances import Extractor, make_packing, unpack, word_pairs


def read(
    folder: Path, source: str, target: str, links: str
) -> tuple[corpus.CorpusSurvey, corpus.SentenceBlock]:
    paths = str(folder / "s"), str(folder / "t"), str(folder / "a")
    for path, line in zip(paths, (source, target, links), strict=True):
        Path(path).write_text(line + "\n")
    words = corpus.survey(*paths)
    return words, next(corpus.blocks(files.parallel(*paths), words, 100))


def phrases(folder: Path, source: str, target: str, links: str, longest: int) -> set[tuple[str, str]]:
    words, block = read(folder, source, target, links)
    extractor = Extractor(words, longest)
    keys, _, _ = extractor.instances(block)
    cut = extractor.source.columns

    def texts(side: corpus.SideVocab, columns: corpus.Int32s) -> list[str]:
        return [" ".join(side.words[word].decode() for word in row if word) for row in columns]

    sources = texts(words.source, unpack(keys[:, :cut], extractor.source, longest))
    targets = texts(words.target, unpack(keys[:, cut:], extractor.target, longest))
    assert all(text.endswith(" |||") for text in [*sources, *targets])
    return {(a.removesuffix(" |||"), b.removesuffix(" |||")) for a, b in zip(sources, targets, strict=True)}


def test_pairs_of_a_crossing_and_an_unlinked_word(tmp_path: Path) -> None:
    """b and c cross; d has no link, so it may join c, which is its only neighbor."""
    assert phrases(tmp_path, "a b c d", "x z y", "0-0 1-2 2-1", 4) == {
        ("a", "x"),
        ("b", "y"),
        ("c", "z"),
        ("c d", "z"),
        ("b c", "z y"),
        ("b c d", "z y"),
        ("a b c", "x z y"),
        ("a b c d", "x z y"),
    }
    assert phrases(tmp_path, "a b c d", "x z y", "0-0 1-2 2-1", 1) == {("a", "x"), ("b", "y"), ("c", "z")}


def test_squares_and_orientations(tmp_path: Path) -> None:
    words, block = read(tmp_path, "a b", "y x", "0-1 1-0")
    _, squares, ways = Extractor(words, 2).instances(block)
    # y and b, x and a: each is swapped with the other; both together are monotone to both ends.
    assert squares.tolist() == [1, 1 << 1 | 1 << 8, 1]
    assert [(way // 3, way % 3) for way in ways.tolist()] == [(2, 1), (0, 0), (1, 2)]


def test_keys_sort_as_lines_do(tmp_path: Path) -> None:
    words, block = read(tmp_path, "b a! a", "x x x", "0-0 1-1 2-2")
    extractor = Extractor(words, 3)
    keys, _, _ = extractor.instances(block)
    order = np.lexsort(keys[:, : extractor.source.columns].T[::-1])
    rows = unpack(keys[order][:, : extractor.source.columns], extractor.source, 3)
    lines = [" ".join(words.source.words[word].decode() for word in row if word) for row in rows]
    assert lines == sorted(lines)
    assert make_packing(words.source, 3).each * make_packing(words.source, 3).columns >= 4


def test_word_pairs_of_words_without_links(tmp_path: Path) -> None:
    words, block = read(tmp_path, "a b", "x y", "0-0")
    left, right = word_pairs(block)
    a, b = (words.source.ids[word] for word in "ab")
    x, y = (words.target.ids[word] for word in "xy")
    assert set(zip(left.tolist(), right.tolist(), strict=True)) == {(a, x), (b, 0), (0, y)}
