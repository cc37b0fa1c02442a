"""Phrase tables as arrays: rows in any order, damaged lines, scores in 8 or 16 bits, words and phrases."""

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.io import files, mapped
from smt_bridge.decoder import system
from smt_bridge.decoder.phrases import (
    PhraseTrie,
    WordPool,
    concatenate_texts,
    find_spans,
    is_trie,
    new_vocabulary,
    path_words,
    word_ids,
)
from smt_bridge.decoder.table import (
    clusters,
    code_book,
    join_columns,
    nearest,
    quantize,
    quantize_scores,
    share_rows,
)
from smt_bridge.decoder.text_tables import check_lines, read_table
from smt_bridge.moses.reordering import ReorderingType
from tests.nmt.formats.test_phrase_table import BAD
from tests.smt_bridge.decoder.models import build_trie, decoder, sentence, write_model

# ---- test table checks -------------------------------------------------------------------------------------
# The decoder's reader refuses what `smt-ini check` refuses, with the same line, and sparse features
# besides.


ROWS = [
    b"a ||| p q ||| 0.5 0.25 ||| 0-0 0-1 ||| 3 2 1 ||| |||",
    b"a b ||| p&apos; ||| 1 1e-05 ||| 0-0 1-0 ||| 3 2 1 ||| |||",
    "b ||| d\u00e9j\u00e0 ||| 0.5 0.125 ||| ||| 3 2 1 ||| ||| {{LHS X}}".encode(),
    b"c ||| r ||| .5 5E-1",
]
# Besides what every reader of phrase tables refuses
OWN = {
    "sparse": (b"b ||| p ||| 1 ||| 0-0 ||| 3 2 1 ||| rnn -3.2 |||", "sparse feature 'rnn'"),
    "columns": (b"b ||| p ||| 1 1 ||| 0-0", "2 scores, but the ini says num-features=1"),
    "far outside": (b"b ||| p ||| 1 ||| 0-99999999999999999999 |||", "is not of the form 0-0 1-2"),
    "latin-1 in the counts": (b"b ||| p ||| 1 ||| 0-0 ||| \xe9 ||| ||| {{LHS X}}", "byte 0xe9"),
}
REFUSED = {**BAD, **OWN}
del REFUSED["scores differ"]


def write(folder: Path, rows: list[bytes]) -> tuple[str, str]:
    """A phrase table, and a reordering table of the same pairs."""
    (folder / "table").write_bytes(b"".join(row + b"\n" for row in rows))
    (folder / "reordering").write_bytes(
        b"".join(b"|||".join(row.split(b"|||")[:2]) + b"||| .2 .3 .5 .2 .3 .5\n" for row in rows)
    )
    return str(folder / "table"), str(folder / "reordering")


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("reordered", [False, True])
def test_bad_lines_are_named(case: str, reordered: bool, tmp_path: Path) -> None:
    row, message = REFUSED[case]
    path, reordering = write(
        tmp_path, [b"a ||| b ||| 0.5", b"a c ||| d ||| 1 ||| 0-0 1-0", row, b"x ||| y ||| .5"]
    )
    with pytest.raises(DataError, match=f"^{path}:3: .*{message}"):
        read_table(path, 1, reordering if reordered else None)


def test_what_the_check_refuses_is_refused(tmp_path: Path) -> None:
    """Tables with a few changed bytes are loaded if every line passes the check, and refused otherwise
    (counts are not checked)."""
    rng = random.Random(5)
    text = b"\n".join(ROWS) + b"\n"
    refused = 0
    for _ in range(400):
        changed = bytearray(text)
        for _ in range(rng.randint(1, 2)):
            place = rng.randrange(len(changed))
            changed[place : place + rng.randint(0, 1)] = rng.choice(
                [b"|", b" ", b"\t", b"0", b"-", b"[", b"]", b"9", b"\r", b"x", b"", b"|||"]
            )
        (tmp_path / "table").write_bytes(changed)
        path = str(tmp_path / "table")
        expected = found = ""
        try:
            check_lines(files.block_lines(bytes(changed)), 2, path)
        except DataError as error:
            expected = str(error)
        try:
            read_table(path, 2, None)
        except DataError as error:
            found = str(error)
        assert bool(expected) == bool(found), repr(bytes(changed)[:60])
        refused += bool(found)
    assert 100 < refused < 350


# ---- test table --------------------------------------------------------------------------------------------


def test_tables_in_any_order(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Unsorted tables whose rows do not match line by line give the same model; a missing reordering row
    costs nothing, with a warning."""
    folder = write_model(tmp_path, 2)
    lines = [sentence(number, 4) for number in range(20)]
    expected = [decoder(folder, stack=10).translate_line(line).derivations[0].total for line in lines]
    rows = (folder / "table").read_text().split("\n")[:-1]
    (folder / "table").write_text("".join(f"{row}\n" for row in reversed(rows)))
    found = [decoder(folder, stack=10).translate_line(line).derivations[0].total for line in lines]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    others = (folder / "reordering").read_text().split("\n")[:-1]
    (folder / "reordering").write_text("".join(f"{row}\n" for row in others[1:]))
    with caplog.at_level("WARNING", logger="smt_bridge"):
        table = decoder(folder).system.table
    assert "no row for 1 pairs" in caplog.text
    source, target = (part.encode() for part in others[0].split(" ||| ")[:2])
    row = next(
        row for row in table.find_rows(source.decode()) if " ".join(table.text(row)).encode() == target
    )
    assert np.isnan(table.reordering[row]).all() and (np.delete(table.reordering, row, 0) < 0).all()


def test_blanks_between_words(tmp_path: Path) -> None:
    """Tabs and several spaces separate words as in Moses, and such rows are found by their words."""
    path, _ = write(
        tmp_path, [*ROWS, b"b \t c ||| s  t ||| 1 1 ||| 0-0 1-1", b"b c ||| u ||| 1 1 ||| 0-0 1-0"]
    )
    read = read_table(path, 2, None)
    assert [read.text(row) for row in read.find_rows("b c")] == [["s", "t"], ["u"]]
    assert read.points(read.find_rows("b c")[0]) == [(0, 0), (1, 1)]


def test_short_reordering_line(tmp_path: Path) -> None:
    path, reordering = write(tmp_path, ROWS)
    (tmp_path / "reordering").write_text("a ||| p q\n")
    with pytest.raises(DataError, match=f"^{reordering}:1: 2 fields"):
        read_table(path, 2, reordering)


def naive(path: Path) -> list[tuple[str, list[str], list[float], str]]:
    """Source, target, probabilities and alignment of each row, sorted, short sources first."""
    rows = []
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        source, target, scores, alignment = line.split(" ||| ")[:4]
        rows.append((source, target.split(), [*map(float, scores.split())], alignment))
    return sorted(rows, key=lambda row: (row[0].count(" "), row[0].split(" ")))


def with_points(line: str, rng: random.Random) -> str:
    """A row with one random alignment point."""
    fields = line.split(" ||| ")
    point = "-".join(str(rng.randrange(len(fields[side].split()))) for side in (0, 1))
    return " ||| ".join([*fields[:3], point, *fields[4:]])


@pytest.mark.parametrize("shuffled", [False, True])
def test_rows_one_by_one(shuffled: bool, tmp_path: Path) -> None:
    """Phrases, logarithms, alignments and reordering of each row."""
    write_model(tmp_path, 3)
    rng = random.Random(3)
    reordering = {}
    for name in ("table", "reordering"):
        lines = (tmp_path / name).read_text().split("\n")[:-1]
        if name == "table":
            lines = [with_points(line, rng) for line in lines]
        else:  # only few different ones, so that some are equal
            lines = [
                " ||| ".join(
                    [*line.split(" ||| ")[:2], " ".join(rng.choice(["0.2", "0.5"]) for _ in range(6))]
                )
                for line in lines
            ]
            reordering = {tuple(line.split(" ||| ")[:2]): line.split(" ||| ")[2].split() for line in lines}
        if shuffled:
            rng.shuffle(lines)
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    found = read_table(str(tmp_path / "table"), 4, str(tmp_path / "reordering"))
    rows = naive(tmp_path / "table")
    assert found.is_sound() and found.rows == len(rows)
    for row, (source, target, scores, alignment) in enumerate(rows):
        assert row in found.find_rows(source) and found.text(row) == target
        np.testing.assert_allclose(found.scores[row], np.log(scores), rtol=1e-6)
        points = [tuple(map(int, point.split("-"))) for point in alignment.split()]
        assert found.points(row) == points
        six = reordering[source, " ".join(target)]
        np.testing.assert_allclose(found.reordering[row], np.log([*map(float, six)]), rtol=1e-6)
    assert found.source_count == len({row[0] for row in rows}) and not len(found.find_rows("nowhere"))
    assert not len(found.node_rows(0)) and not len(found.find_rows("a a a a a a a a"))


def test_a_probability_of_0(tmp_path: Path) -> None:
    """As in Moses its logarithm is -100, the lowest score."""
    path, _ = write(tmp_path, [b"a ||| p ||| 0 1e-45 ||| 0-0", b"b ||| q ||| 1 0.5 ||| 0-0"])
    scores = read_table(path, 2, None).scores
    assert scores[0].tolist() == [-100.0, -100.0] and scores[1, 0] == 0.0


# ---- scores in 8 or 16 bits --------------------------------------------------------------------------------


RNG = np.random.default_rng(1)


def test_few_values_are_kept() -> None:
    """nan is one of them, with one code for all of its rows."""
    values = RNG.choice(np.array([-100.0, -1.5, -0.25, 0.0, np.nan], np.float32), (300, 2))
    codes, book = quantize_scores(values, 8)
    assert codes.dtype == np.uint8 and book.shape == (2, 5)
    decoded = book[np.arange(2), codes]
    np.testing.assert_array_equal(decoded, values)


@pytest.mark.parametrize("missing", [False, True])
def test_a_code_is_that_of_the_nearest_value(missing: bool) -> None:
    values = np.log(RNG.uniform(1e-6, 1, 5000)).astype(np.float32)
    if missing:
        values[::7] = np.nan
    book = code_book(values, 64)
    known = book[~np.isnan(book)]
    assert len(book) <= 64 and (np.diff(known) > 0).all() and np.isnan(book).sum() == missing
    codes = nearest(values, book)
    for value, code in zip(values[:200], codes[:200], strict=True):
        if np.isnan(value):
            assert np.isnan(book[code])
        else:
            assert abs(value - book[code]) == np.abs(known - value).min()


def test_clusters_are_better_than_equal_steps() -> None:
    """Frequent values are nearly exact, and the squared error is below that of as many equidistant values."""
    values, counts = np.unique(np.round(RNG.normal(-4, 2, 20_000), 3), return_counts=True)
    counts[10] = 50_000
    centers = clusters(values, counts.astype(np.float64), 100)
    assert len(centers) <= 100 and np.abs(centers - values[10]).min() < 1e-3

    def error(book: np.ndarray) -> float:
        return float(counts @ np.abs(values[:, None] - book).min(1) ** 2)

    assert error(centers) < 0.5 * error(np.linspace(values[0], values[-1], 100))


@pytest.mark.parametrize(("bits", "kind"), [(8, np.uint8), (16, np.uint16)])
def test_a_table_of_few_values_is_the_same(bits: int, kind: type, tmp_path: Path) -> None:
    """With fewer rows than codes every score is exact, and nothing else changes."""
    table = system.load(str(write_model(tmp_path, 1)), use_cache=False).table
    small = quantize(table, bits)
    assert small.is_sound() and small.scores.dtype == small.reordering.dtype == kind
    every = np.arange(table.rows)
    np.testing.assert_array_equal(small.log_scores(every), table.log_scores(every))
    np.testing.assert_array_equal(small.log_reordering(every), table.log_reordering(every))
    assert small.rows == table.rows and [*map(small.text, range(table.rows))] == [
        *map(table.text, range(table.rows))
    ]
    broken = replace(small, score_values=small.score_values[:, :1])
    assert not broken.is_sound()
    with pytest.raises(ValueError, match="already"):
        quantize(small, bits)


@pytest.mark.parametrize(("rows", "columns"), [(7, 6), (1000, 6), (1000, 8)])
def test_equal_rows_of_codes_are_stored_once(
    rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    codes = rng.choice(np.array([0, 1, 255], np.uint8), (900, columns))[rng.integers(900, size=5000)]
    monkeypatch.setattr(mapped, "ROWS", rows)
    distinct, index = share_rows(codes)
    assert (distinct[index] == codes).all() and index.dtype == np.uint16
    assert len(distinct) == len(np.unique(codes, axis=0)) < 900
    for alone in (codes[:, :0], codes.astype(np.uint16), rng.integers(256, size=(500, 6)).astype(np.uint8)):
        same, index = share_rows(alone)
        assert same is alone and not len(index)


@pytest.mark.parametrize("kind", ["wbe-msd-bidirectional-fe", "hier-mslr-bidirectional-fe"])
def test_a_table_with_shared_rows_is_the_same(kind: str, tmp_path: Path) -> None:
    columns = ReorderingType.parse(kind).probabilities
    table = system.load(str(write_model(tmp_path, 1, kind=kind)), use_cache=False).table
    table = replace(table, reordering=table.reordering[np.arange(table.rows) % 9])
    small, rows = quantize(table, 8), np.arange(table.rows)[::-1]
    assert (
        small.is_sound()
        and small.reordering.shape == (9, columns)
        and len(small.reordering_row) == table.rows
    )
    np.testing.assert_array_equal(small.log_reordering(rows), table.log_reordering(rows))
    assert not replace(small, reordering_row=small.reordering_row + 1).is_sound()
    assert not replace(small, reordering_row=small.reordering_row[1:]).is_sound()


def test_without_reordering(tmp_path: Path) -> None:
    table = system.load(str(write_model(tmp_path, 1, reordering=False)), use_cache=False).table
    small = quantize(table, 8)
    assert small.is_sound() and small.log_reordering(np.arange(3)).shape == (3, 0)


@pytest.mark.parametrize("block", [7, 1000])
@pytest.mark.parametrize("bits", [0, 8])
def test_columns_of_few_values_take_one_byte_together(
    block: int, bits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the order of the columns; a column that would make more than 256 combinations stays."""
    table = system.load(str(write_model(tmp_path, 1)), use_cache=False).table
    rng, rows = np.random.default_rng(2), np.arange(table.rows * 20) % table.rows
    bins = np.eye(6, dtype=np.float32)[rng.integers(6, size=len(rows))]
    many, few = rng.integers(40, size=len(rows)), rng.integers(20, size=len(rows))
    scores = np.column_stack([rng.normal(size=len(rows)), bins[:, :3], many, few, bins[:, 3:]])
    table = replace(
        table,
        starts=np.array([0, *table.starts[1:] * 20]),
        target=table.target[rows],
        alignment=table.alignment[rows],
        reordering=table.reordering[rows],
        scores=scores.astype(np.float32),
        score_values=np.zeros((9, 0), np.float32),
    )
    monkeypatch.setattr(mapped, "ROWS", block)
    small, every = join_columns(table), rng.permutation(len(rows))
    assert small.joined.tolist() == [1, 2, 3, 5, 6, 7, 8] and small.columns == 9
    assert small.scores.shape == (len(rows), 2) and small.joined_row.dtype == np.uint8
    np.testing.assert_array_equal(small.log_scores(every), table.log_scores(every))
    if bits:
        one, other = quantize(small, bits), quantize(table, bits)
        np.testing.assert_array_equal(one.log_scores(every), other.log_scores(every))
        small = one
    assert small.is_sound()
    for broken in (
        {"joined_row": small.joined_row[1:]},
        {"joined_values": small.joined_values[:-1]},
        {"joined_values": small.joined_values[:, 1:]},
        {"joined_values": np.full_like(small.joined_values, np.nan)},
        {"joined": small.joined + 1},
        {"joined": small.joined * 0},
        {"joined": small.joined[:0]},
    ):
        assert not replace(small, **broken).is_sound()


def test_a_table_without_such_columns_stays(tmp_path: Path) -> None:
    table = system.load(str(write_model(tmp_path, 1)), use_cache=False).table
    scores = np.random.default_rng(3).normal(size=(300, table.columns)).astype(np.float32)
    many = replace(table, scores=scores, target=np.ones(300, np.int32))
    assert join_columns(many) is many
    with pytest.raises(ValueError, match="already"):
        join_columns(quantize(table, 8))


# ---- words and phrases -------------------------------------------------------------------------------------


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
    """The words of each node are those of its phrase, and nodes of each length are sorted."""
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
    unsorted, level = trie.parent.copy(), slice(*trie.levels[2:4])  # of two words
    unsorted[level] = unsorted[level][::-1]
    assert not is_trie(trie._replace(parent=unsorted), 5)
    for levels in (trie.levels[:-1], trie.levels[1:], trie.levels + 1, trie.levels[:1]):
        assert not is_trie(trie._replace(levels=levels), 5)


def test_words_are_found_by_their_bytes() -> None:
    """Each word has its number, other words have none, and a word is decoded once."""
    pool = WordPool(*concatenate_texts(sorted(word.encode() for word in WORDS)))
    assert len(pool) == len(WORDS) and sorted(pool) == sorted(WORDS)
    for number, word in enumerate(pool):
        assert pool.find(word) == number and pool[number] is word
    assert all(pool.find(word) == -1 for word in ("", "A", "aa", "é ", "zz", "\U0001f600"))
    assert pool[1:3] == [pool[1], pool[2]]
    for outside in (-1, len(pool)):
        with pytest.raises(IndexError):
            pool[outside]


def test_word_ids_are_those_of_lists() -> None:
    rng = random.Random(5)
    phrases = [" ".join(rng.choices(WORDS, k=rng.randint(1, 3))).encode() for _ in range(99)]
    vocabulary = new_vocabulary()
    ids, cut = word_ids(phrases, vocabulary)
    names = list(vocabulary)
    for number, phrase in enumerate(phrases):
        assert b" ".join(names[word] for word in ids[cut[number] : cut[number + 1]]) == phrase
    assert len(cut) == len(phrases) + 1 and sorted(names) == sorted(word.encode() for word in WORDS)
    assert [array.tolist() for array in word_ids([], vocabulary)] == [[], [0]]
