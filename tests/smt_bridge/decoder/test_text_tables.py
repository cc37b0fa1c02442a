"""Text tables, read in blocks into arrays in memory or on disk, equal a table that is built from Python's
objects."""

import math
import random
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from nmt.compute.compiled import HAVE_NUMBA
from nmt.errors import DataError
from nmt.io import mapped
from nmt.io.mapped import ArrayStorage, count_values
from smt_bridge.decoder import phrases, text_tables
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.phrases import GrowingTrie
from smt_bridge.decoder.table import PhraseTable, quantize, smallest
from smt_bridge.decoder.text_tables import (
    GrowingRows,
    log_scores,
    parse_decimals,
    read_table,
    split_evenly,
    split_reordering,
)
from tests.smt_bridge.decoder.test_table import REFUSED, write

SOURCE = ["a", "b", "c", "d\u00e9j\u00e0", "&apos;s"]
TARGET = ["p", "q", "\u65e5\u672c", "s"]
SIZES = {"one block": (1 << 16, 1 << 20, 1 << 12), "tiny blocks": (3, 2, 1)}


@pytest.fixture(params=SIZES)
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of a block, rows of a block, and nodes of a new trie."""
    lines, rows, nodes = SIZES[request.param]
    monkeypatch.setattr(text_tables, "BLOCK", lines)
    monkeypatch.setattr(mapped, "ROWS", rows)
    monkeypatch.setattr(phrases, "FIRST_NODES", nodes)


# ---- the naive twin ----------------------------------------------------------------------------------------


class NaiveTrie:
    """The trie of phrases, whose nodes are their sorted prefixes."""

    def __init__(self, phrases: Sequence[tuple[int, ...]]) -> None:
        prefixes = {phrase[:size] for phrase in phrases for size in range(len(phrase) + 1)}
        self.order = sorted(prefixes, key=lambda prefix: (len(prefix), prefix))
        self.node = {prefix: node for node, prefix in enumerate(self.order)}
        self.parent = [self.node[prefix[:-1]] for prefix in self.order]
        self.word = [prefix[-1] if prefix else 0 for prefix in self.order]
        lengths = list(map(len, self.order))
        self.levels = [0, *(lengths.index(length) for length in range(1, max(lengths) + 1)), len(lengths)]


def naive_table(path: str, columns: int, reordering: str | None) -> dict[str, object]:
    """All arrays of a table, as lists."""
    extra: dict[tuple[bytes, bytes], list[float]] = {}
    for line in Path(reordering).read_bytes().split(b"\n")[:-1] if reordering else []:
        source, target, scores = line.split(b"|||")[:3]
        extra[source.strip(b" \t"), target.strip(b" \t")] = list(map(log, scores.split()))
    rows = []
    for line in Path(path).read_bytes().split(b"\n")[:-1]:
        source, target, scores, alignment = [*line.split(b"|||"), b""][:4]
        six = extra.get((source.strip(b" \t"), target.strip(b" \t")), [math.nan] * 6) if reordering else []
        rows.append((source.split(), target.split(), list(map(log, scores.split())), six, alignment.strip()))
    words = sorted({word for source, target, *_ in rows for word in (*source, *target)})
    number = {word: rank for rank, word in enumerate(words)}
    sources = [tuple(number[word] for word in row[0]) for row in rows]
    targets = [tuple(number[word] for word in row[1]) for row in rows]
    alignments = list({row[4]: None for row in rows})
    source_trie, target_trie = NaiveTrie(sources), NaiveTrie(targets)
    order = sorted(range(len(rows)), key=lambda row: source_trie.node[sources[row]])
    row_nodes = [source_trie.node[sources[row]] for row in order]
    return {
        "word_text": b"".join(words),
        "word_cut": np.cumsum([0, *map(len, words)]).tolist(),
        "source_word": source_trie.word,
        "source_children": [
            1 + sum(parent < node for parent in source_trie.parent[1:])
            for node in range(len(source_trie.parent) + 1)
        ],
        "source_levels": source_trie.levels,
        "starts": [sum(node < here for node in row_nodes) for here in range(len(source_trie.parent) + 1)],
        "target_word": target_trie.word,
        "target_parent": target_trie.parent,
        "target_levels": target_trie.levels,
        "target": [target_trie.node[targets[row]] for row in order],
        "scores": [rows[row][2] for row in order],
        "reordering": [rows[row][3] for row in order],
        "alignment": [alignments.index(rows[row][4]) for row in order],
        "alignment_text": b"".join(alignments),
        "alignment_cut": np.cumsum([0, *map(len, alignments)]).tolist(),
        "score_values": [[]] * columns,
        "reordering_row": [],
        "joined": [],
        "joined_row": [],
        "joined_values": np.zeros((0, 0)),
        "reordering_values": [[]] * (6 if reordering else 0),
        "source_count": len(set(sources)),
    }


def log(score: bytes) -> float:
    """The logarithm of a probability, as numpy computes it for single precision."""
    return float(np.float32(max(np.log(float(score)), -100.0))) if float(score) else -100.0


def equal(value: object, expected: object) -> bool:
    """Whether an array or number of a table is the naive one; nan is equal to nan."""
    if isinstance(expected, bytes):
        return bool(np.asarray(value).tobytes() == expected)
    found, wanted = np.asarray(value, np.float64), np.asarray(expected, np.float64)
    return not found.size + wanted.size or bool(np.array_equal(found, wanted, equal_nan=True))


# ---- tables ------------------------------------------------------------------------------------------------


def random_rows(rng: random.Random, count: int) -> list[bytes]:
    """Rows of two scores, sorted by source, some with odd blanks or few fields; all pairs differ."""
    pairs = {
        (
            " ".join(rng.choices(SOURCE, k=rng.randint(1, 4))),
            " ".join(rng.choices(TARGET, k=rng.randint(1, 3))),
        )
        for _ in range(count)
    }
    rows = []
    for source, target in sorted(pairs):
        scores = " ".join(rng.choice(["0.5", f"{rng.random():.6g}", "1e-40", "0", ".5E-3"]) for _ in range(2))
        alignment = rng.choice(["0-0", "", f"{source.count(' ')}-0 0-{target.count(' ')}"])
        if odd := rng.random() < 0.1:
            source, target = source.replace(" ", "\t ", 1), target.replace(" ", "  ")
        rows.append(f"{source} ||| {target} ||| {scores} ||| {alignment} ||| 3 2 1 ||| |||")
        if odd:
            rows[-1] = rng.choice([rows[-1], f"{source} ||| {target} ||| {scores}"])
    return [row.encode() for row in rows]


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("reordering", ["none", "side by side", "shuffled", "lacks rows"])
def test_equal_to_the_naive_table(
    reordering: str, on_disk: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(5)
    for shuffled in (False, True):
        rows = random_rows(rng, 60)
        if shuffled:
            rng.shuffle(rows)
        path, other = write(tmp_path, rows)
        lines = Path(other).read_text(encoding="utf-8").split("\n")[:-1]
        scores = [" ".join(f"{rng.uniform(0.05, 1):.6g}" for _ in range(6)) for _ in lines]
        lines = [line.replace(".2 .3 .5 .2 .3 .5", six) for line, six in zip(lines, scores, strict=True)]
        if reordering == "shuffled":
            rng.shuffle(lines)
        if reordering == "lacks rows":
            del lines[::4]
        Path(other).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        with_other = None if reordering == "none" else other
        folder = tmp_path / "arrays"
        folder.mkdir(exist_ok=True)
        storage = ArrayStorage(folder if on_disk else None)
        counted: list[int] = []
        found = read_table(path, 2, with_other, storage, counted.append)
        expected = naive_table(path, 2, with_other)
        assert found.is_sound() and set(expected) == {field.name for field in fields(PhraseTable)}
        for name, value in expected.items():
            assert equal(getattr(found, name), value), name
        assert found.scores.dtype == found.reordering.dtype == np.float32 and found.target.dtype == np.int32
        assert found.source_word.dtype == np.uint16 and found.starts.dtype == np.int32
        assert found.alignment.dtype == np.uint8 and not list(folder.iterdir())
        assert reordering in ("shuffled", "lacks rows") or sum(counted) == len(rows)
        missing = f"no row for {len(rows) - len(lines)} pairs"
        assert (missing in caplog.text) == (reordering == "lacks rows")
        caplog.clear()


@pytest.mark.parametrize("case", REFUSED)
def test_bad_lines_are_named_in_any_block(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the message of one block."""
    row, _ = REFUSED[case]
    path, _ = write(tmp_path, [b"a ||| b ||| 0.5", b"a c ||| d ||| 1 ||| 0-0 1-0", row, b"x ||| y ||| .5"])
    with pytest.raises(DataError) as whole:
        read_table(path, 1, None)
    monkeypatch.setattr(text_tables, "BLOCK", 2)
    with pytest.raises(DataError) as cut:
        read_table(path, 1, None)
    assert str(cut.value) == str(whole.value) and f"{path}:3: " in str(cut.value)


def test_bad_reordering_lines_are_named_in_any_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read side by side, and looked up."""
    monkeypatch.setattr(text_tables, "BLOCK", 2)
    path, other = write(tmp_path, [b"a ||| b ||| 1", b"c ||| d ||| 1", b"e ||| f ||| 1"])
    lines = Path(other).read_bytes().split(b"\n")[:-1]
    for text, message in (
        (b"e ||| f ||| .2 .3", "expected source"),
        (b"e ||| f", "2 fields"),
        (b"e ||| f |||", "expected source"),
    ):
        for order in ([lines[0], lines[1], text], [lines[1], lines[0], text]):
            Path(other).write_bytes(b"\n".join(order))
            with pytest.raises(DataError, match=f"^{other}:3: .*{message}"):
                read_table(path, 1, other)
    Path(other).write_bytes(b"")
    with pytest.raises(DataError, match=f"^{other}: empty"):
        read_table(path, 1, other)
    Path(path).write_bytes(b"")
    for reordering in (None, other):
        with pytest.raises(DataError, match=f"^{path}: empty"):
            read_table(path, 1, reordering)


def test_a_target_that_begins_another_is_not_the_same(tmp_path: Path) -> None:
    """Rows in the same order, of which one has another target, are looked up."""
    path, other = write(tmp_path, [b"a ||| b c ||| 1 ||| 0-0", b"a ||| d ||| 1 ||| 0-0"])
    content = Path(other).read_bytes()
    Path(other).write_bytes(content.replace(b"b c", b"b"))
    found = read_table(path, 1, other).reordering
    assert np.isnan(found[0]).all() and not np.isnan(found[1]).any()


def test_an_alignment_that_goes_beyond_one_row_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An alignment that is known from an earlier block is compared with the phrases of each row."""
    monkeypatch.setattr(text_tables, "BLOCK", 1)
    path, _ = write(tmp_path, [b"a b ||| c ||| 1 ||| 1-0", b"b ||| c ||| 1 ||| 1-0"])
    with pytest.raises(DataError, match=f"^{path}:2: "):
        read_table(path, 1, None)


# ---- parts -------------------------------------------------------------------------------------------------


def test_lines_are_split_evenly() -> None:
    """As one by one, whatever bars and blanks they have; None for different numbers of fields."""
    rng = random.Random(2)
    even = 0
    for _ in range(3000):
        lines = [
            b"".join(rng.choices([b"|", b"||", b"|||", b" ", b"a", b"\r"], [1, 1, 4, 2, 2, 1], k=6))
            for _ in range(rng.randint(1, 3))
        ]
        rows = [line.split(b"|||") for line in lines]
        columns = split_evenly(lines)
        if columns is not None:
            even += 1
            assert [list(row) for row in zip(*columns, strict=True)] == rows
        elif not any(b"||||" in line or line.endswith(b"|") for line in lines):
            assert len(set(map(len, rows))) > 1
        shortest = min(map(len, rows))
        pairs = split_reordering(lines)
        assert (pairs is None) == (shortest < 3)
        assert pairs is None or [list(row) for row in zip(*pairs, strict=True)] == [row[:3] for row in rows]
    assert even > 500


@pytest.mark.skipif(not HAVE_NUMBA, reason="numbers are then parsed by numpy")
def test_decimals_are_the_nearest_numbers() -> None:
    """Bit by bit; what is not certain is left to numpy."""
    rng = random.Random(3)
    texts = [f"{rng.random() * 10.0 ** rng.randint(-20, 3):.{rng.randint(1, 15)}g}" for _ in range(2000)]
    texts += ["0", "1", "1.", ".5", "00.100", "1E-5", "1e+05", "9007199254740992", "0.e1", "123456789e-22"]
    odd_texts = [
        "9007199254740993", "0.10000000000000000000001", "1e-23", "1e23", "e5", ".", "1e", "1e+", "-1", "+1",
        "1.2.3", "inf", "nan", "1_0", "0x1", "", "1 2", "1\r", "1e99999999999999999999",
    ]  # fmt: skip
    values, odd = np.zeros((len(texts) + len(odd_texts), 1)), np.zeros(len(texts) + len(odd_texts), bool)
    text = "".join(f" \t{text} \n" for text in [*texts, *odd_texts]).encode()
    parse_decimals(np.frombuffer(text, np.uint8), values, odd)
    assert odd[len(texts) :].all() and odd[: len(texts)].mean() < 0.4
    assert not odd[2000 : len(texts)].any()
    for text_value, value, is_odd in zip(texts, values[:, 0].tolist(), odd.tolist(), strict=False):
        assert is_odd or value == float(text_value)


def test_scores_that_numpy_parses() -> None:
    """Among others, and with blanks that they may have."""
    found, sound = log_scores([b" 0.5 1e-30 ", b"1 0", b"0.25 0.10000000000000000000001 "], 2)
    np.testing.assert_array_equal(
        found, np.log(np.array([[0.5, 1e-30], [1, np.exp(-100)], [0.25, 0.1]])).astype(np.float32)
    )
    assert sound and not log_scores([b" 0.5\r"], 1)[1]
    for texts in ([b"1", b"1 1"], [b"inf"], [b"-1"], [b""], [b"1 1"]):
        with pytest.raises(ValueError, match=r"^"):
            log_scores(texts, 1)


@pytest.mark.parametrize("seed", range(4))
def test_a_growing_trie_has_each_prefix_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its hash table held when phrases were added."""
    monkeypatch.setattr(phrases, "FIRST_NODES", 1)
    rng = random.Random(seed)
    growing, seen = GrowingTrie(), list[tuple[int, ...]]()
    nodes: list[int] = []
    for _ in range(12):
        block = [tuple(rng.choices(range(9), k=rng.randint(1, 5))) for _ in range(rng.choice([0, 1, 50]))]
        ids = np.array([word for phrase in block for word in phrase], np.int32)
        nodes += growing.add(ids, np.cumsum([0, *map(len, block)])).tolist()
        seen += block
    assert growing.size <= 0.75 * len(growing.slots) and np.count_nonzero(growing.slots) == growing.size - 1
    rank = np.array(rng.sample(range(9), 9), np.int32)
    trie, number = growing.sort(rank)
    twin = NaiveTrie([tuple(rank[[*phrase]].tolist()) for phrase in seen])
    assert (trie.parent.tolist(), trie.word.tolist(), trie.levels.tolist()) == (
        twin.parent,
        twin.word,
        twin.levels,
    )
    assert number[nodes].tolist() == [twin.node[tuple(rank[[*phrase]].tolist())] for phrase in seen]


def test_a_growing_array_has_few_parts(tmp_path: Path) -> None:
    """In the order in which rows were added."""
    rng = np.random.default_rng(1)
    growing = GrowingRows(ArrayStorage(tmp_path), np.int32)
    assert not [*growing.blocks()]
    added = [rng.integers(0, 99, (size, 2), np.int32) for size in rng.integers(1, 40, 200)]
    for rows in added:
        growing.add(rows)
    np.testing.assert_array_equal(np.concatenate([*growing.blocks()]), np.concatenate(added))
    assert growing.size == sum(map(len, added)) and len(growing.parts) < 30


@pytest.mark.usefixtures("sizes")
def test_values_are_counted_in_blocks() -> None:
    values = np.random.default_rng(4).choice(np.array([-3.5, 0.25, np.nan, 7], np.float32), 50)
    distinct, counts = count_values(values)
    expected = np.unique(values, return_counts=True)
    np.testing.assert_array_equal(distinct, expected[0])
    assert counts.tolist() == expected[1].tolist()
    assert smallest(np.arange(9), np.uint8, np.int32).tolist() == [*range(9)]


@pytest.mark.parametrize("bits", [8, 16])
def test_quantized_in_blocks(bits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same codes and values as in one block, in memory and on disk; and each damage is noticed, in
    whatever block."""
    rng = random.Random(6)
    rows = [f"{number} ||| x ||| {rng.random():.6g} 1".encode() for number in range(400)]
    exact = read_table(write(tmp_path, rows)[0], 2, None)
    whole = quantize(exact, bits)
    monkeypatch.setattr(mapped, "ROWS", 7)
    cut = quantize(exact, bits, ArrayStorage(tmp_path))
    for field in fields(PhraseTable):
        np.testing.assert_array_equal(getattr(cut, field.name), getattr(whole, field.name))
    assert cut.is_sound() and exact.is_sound()
    for name, value in (("starts", 0), ("source_children", 0), ("target", 0), ("scores", np.nan)):
        for position in (6, 7, 8, len(getattr(exact, name)) - 2):
            broken = getattr(exact, name).copy()
            broken[position] = value
            values = {field.name: getattr(exact, field.name) for field in fields(PhraseTable)}
            assert not PhraseTable(**{**values, name: broken}).is_sound(), (name, position)


def test_a_large_table_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its arrays are made in the folder of the cache, where nothing stays of them."""
    monkeypatch.setattr(mapped, "LARGE", 0)
    path, _ = write(tmp_path, random_rows(random.Random(8), 20))
    cache = Cache(tmp_path / "cache")
    storage = cache.storage([path])
    assert storage.folder == cache.folder and Cache("/proc/none").storage([path]).folder is None
    made = cache.keep([path], lambda: read_table(path, 2, None, storage), PhraseTable)
    mapped_table = cache.keep([path], lambda: pytest.fail("made again"), PhraseTable)
    for field in fields(PhraseTable):
        np.testing.assert_array_equal(getattr(mapped_table, field.name), getattr(made, field.name))
    assert [path.name for path in cache.folder.iterdir() if path.name != ".lock"] == [
        entry.path.name for entry in cache.entries()
    ]
