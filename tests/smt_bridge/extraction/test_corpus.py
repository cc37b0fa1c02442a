"""A corpus as numbers: order of the words, blocks of any size, and words that no table can hold."""

import random
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.io import files
from smt_bridge.extraction import corpus
from smt_bridge.extraction.corpus import SideVocab

Row = tuple[str, str, str]


def write(folder: Path, seed: int, pairs: int = 40) -> tuple[list[Row], Row]:
    """A random corpus with empty lines: its lines, and its files."""
    rng = random.Random(seed)
    rows = []
    for _ in range(pairs):
        source, target = (
            [rng.choice(["a", "b", "a!", "é", "ab", "~"]) for _ in range(rng.randint(0, 4))] for _ in range(2)
        )
        points = {
            (rng.randrange(len(source)), rng.randrange(len(target)))
            for _ in range(rng.randint(0, 4))
            if source and target
        }
        links = " ".join(f"{a}-{b}" for a, b in sorted(points))
        rows.append((" ".join(source), "  ".join(target), links))
    paths = str(folder / "s"), str(folder / "t"), str(folder / "a")
    for side, path in enumerate(paths):
        Path(path).write_text("".join(f"{row[side]}\n" for row in rows), encoding="utf-8")
    return rows, paths


def test_numbers_sort_as_lines_of_a_table(tmp_path: Path) -> None:
    """Phrases by their numbers, the end of a phrase included, are in the order of bytes."""
    found = SideVocab({"a", "a!", "a\x01", "ab", "é", "~", "{", "}"})
    rng = random.Random(1)
    words = sorted(found.ids.keys() - {"", "|||"})
    phrases = {tuple(rng.choices(words, k=rng.randint(1, 3))) for _ in range(200)}
    by_number = sorted(phrases, key=lambda phrase: [*(found.ids[word] for word in phrase), found.end])
    assert by_number == sorted(phrases, key=lambda phrase: f"{' '.join(phrase)} ||| ".encode())
    assert len(found) == 10 and 1 << found.bits > len(found) and found.words[found.end] == "|||"


@pytest.mark.parametrize("tokens", [1, 7, 50, 10_000])
def test_blocks_hold_the_corpus(tokens: int, tmp_path: Path) -> None:
    """Whatever their size: the words and links of every pair, in order; each but the last is large enough."""
    rows, paths = write(tmp_path, 2)
    words = corpus.count_words(files.parallel(*paths), paths).survey(paths)
    found, sizes = [], []
    for block in corpus.blocks(files.parallel(*paths), words, tokens):
        sizes.append(len(block.source) + len(block.target))
        for pair in range(len(block.source_cut) - 1):
            source = block.source[block.source_cut[pair] : block.source_cut[pair + 1]]
            target = block.target[block.target_cut[pair] : block.target_cut[pair + 1]]
            points = block.points[block.point_cut[pair] : block.point_cut[pair + 1]]
            found.append((
                " ".join(words.source.words[word] for word in source),
                "  ".join(words.target.words[word] for word in target),
                " ".join(f"{a}-{b}" for a, b in points),
            ))  # fmt: skip
    assert found == rows and all(size >= tokens for size in sizes[:-1])
    assert (words.pairs, words.tokens) == (40, sum(sizes))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("a|b", "x", ""), r"s:2: '\|' in 'a\|b': Moses' tables cannot hold it"),
        (("a", "[X]", ""), r"t:2: '\[X\]' would be a non-terminal"),
        (("a", "x", "0-1"), r"a:2: point 0-1 is outside"),
        (("a", "x", "0:0"), r"a:2: '0:0' is not an alignment point"),
        (("", "", ""), "t: no words, expected a parallel text"),
    ],
)
def test_what_no_table_can_hold(row: tuple[str, str, str], message: str, tmp_path: Path) -> None:
    paths = str(tmp_path / "s"), str(tmp_path / "t"), str(tmp_path / "a")
    first = ("a", "x", "0-0") if any(row) else ("a", "", "")
    for path, *lines in zip(paths, first, row, strict=True):
        files.write_text(path, lines)
    with pytest.raises(DataError, match=message):
        corpus.count_words(files.parallel(*paths), paths).survey(paths)
