"""Pruning of whole tables: criteria alone and together, block by block, with the reordering table."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from smt_bridge.extraction import tables
from smt_bridge.extraction.config import ExtractConfig, PruneConfig, significance_threshold
from smt_bridge.extraction.tables import TableInputs, TableOutputs
from smt_bridge.tables import filter as filter_table
from smt_bridge.tables.cooccurrence import Cooccurrences, significances
from smt_bridge.tables.filter import FilterPaths, Occurring
from smt_bridge.tables.pruning import TablePairs, prune_tables
from tests.smt_bridge.extraction.test_tables import write


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> TableInputs:
    """Texts with tables `table` and `reordering` beside them: word for word, but for one word in ten."""
    folder, rng = tmp_path_factory.mktemp("corpus"), random.Random(1)
    words = [f"w{number}" for number in range(40)]
    pairs = []
    for _ in range(60):
        line = rng.choices(words, [1 / (rank + 1) for rank in range(40)], k=rng.randrange(2, 10))
        target = [word.upper() if rng.random() < 0.9 else rng.choice(words).upper() for word in line]
        pairs.append((line, target, [(at, at) for at in range(len(line))]))
    inputs = write(pairs, folder)
    outputs = TableOutputs(str(folder / "table"), str(folder / "reordering"))
    tables.build(inputs, outputs, ExtractConfig(max_length=4))
    return inputs


Pruned = tuple[list[bytes], list[bytes]]


@pytest.fixture
def prune(corpus: TableInputs, tmp_path: Path) -> Callable[..., Pruned]:
    """Prune the tables of the corpus; returns the lines of both."""
    folder = Path(corpus.source).parent

    def pruned(wanted: Occurring | None = None, **config: object) -> Pruned:
        paths = FilterPaths(folder / "table", tmp_path / "t", folder / "reordering", tmp_path / "r")
        settings = PruneConfig(**config)  # type: ignore[arg-type]
        number = prune_tables(paths, wanted, settings, (corpus.source, corpus.target))
        rows, others = ((tmp_path / name).read_bytes().split(b"\n")[:-1] for name in ("t", "r"))
        assert number == len(rows) == len(others)
        return rows, others

    return pruned


def read_rows(corpus: TableInputs) -> list[phrase_table.PhrasePair]:
    return list(phrase_table.read(Path(corpus.source).parent / "table"))


def values(corpus: TableInputs, rows: Sequence[phrase_table.PhrasePair]) -> list[float]:
    counts = Cooccurrences(corpus.source, corpus.target)
    return [float(value) for value in significances(counts.count(rows), counts.pairs)]


def test_alpha_decides_on_pairs_that_occur_once(corpus: TableInputs, prune: Callable[..., Pruned]) -> None:
    rows = read_rows(corpus)
    alpha = math.log(60)
    significant = values(corpus, rows)
    once = {row.raw for row, value in zip(rows, significant, strict=True) if abs(value - alpha) < 1e-9}
    more = {row.raw for row, value in zip(rows, significant, strict=True) if value > alpha + 0.01}
    assert once and more and len(once | more) < len(rows)
    assert set(prune(prune_significance="a+e")[0]) == more
    assert set(prune(prune_significance="a-e")[0]) == more | once
    assert len(prune(prune_significance="0")[0]) == len(rows)


@pytest.mark.parametrize("block", [1, 7, 100_000])
def test_blocks_change_nothing(
    block: int, corpus: TableInputs, prune: Callable[..., Pruned], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows of both tables, in their order; each criterion sees what the others kept."""
    rows = read_rows(corpus)
    left = [row for row in rows if phrase_table.joint_count(row) >= 2]
    left = [row for row, value in zip(left, values(corpus, left), strict=True) if value >= 5.5]
    store = TablePairs()
    store.add(left, map(phrase_table.joint_count, left))
    expected = [row for row, stays in zip(left, store.keep(0.002), strict=True) if stays]
    assert 0 < len(expected) < len(left) < len(rows)
    monkeypatch.setattr(filter_table, "BLOCK", block)
    lines, others = prune(prune_count=2, prune_significance="5.5", prune_entropy=0.002)
    assert lines == [row.raw for row in expected]
    assert [line.split(b" ||| ")[:2] for line in others] == [line.split(b" ||| ")[:2] for line in lines]


def test_texts_and_pruning_together(corpus: TableInputs, prune: Callable[..., Pruned]) -> None:
    """Rows for a text that stay are those of the whole table."""
    text = Path(corpus.source).read_bytes().split(b"\n")[:3]
    wanted = Occurring(text)
    for criteria in ({"prune_count": 2, "prune_significance": "a+e"}, {"prune_entropy": 0.002}):
        lines, others = prune(wanted, **criteria)
        everything, _ = prune(**criteria)
        assert lines == [line for line in everything if line.split(b" ||| ")[0] in wanted]
        assert 0 < len(lines) < len(everything) and len(others) == len(lines)


@pytest.mark.parametrize("text", ["a", "a+", "-1", "nan", "inf", "1e999", ""])
def test_thresholds_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected a\+e, a-e, or a number of 0 or more"):
        significance_threshold(text, 10)


def test_only_tables_that_were_checked_are_not_checked_again(corpus: TableInputs, tmp_path: Path) -> None:
    """Both tables have a line that Moses refuses; each is named unless it is said to be sound."""
    folder, table, reordering = Path(corpus.source).parent, tmp_path / "t", tmp_path / "r"
    for path, name in (table, "table"), (reordering, "reordering"):
        first, _, rest = (folder / name).read_bytes().partition(b"\n")
        source, target, scores = first.split(b" ||| ", 2)
        path.write_bytes(b" ||| ".join([source, target, b"-" + scores]) + b"\n" + rest)
    config = PruneConfig(prune_entropy=0.001)
    paths = FilterPaths(table, tmp_path / "o", reordering, tmp_path / "p")
    for checked, name in ((), "t"), ((table,), "r"):
        paths.checked = checked
        with pytest.raises(DataError, match=f"/{name}:1: score -[0-9.]+ is negative"):
            prune_tables(paths, None, config, None)
    paths.checked = (table, reordering)
    assert prune_tables(paths, None, config, None)


def test_texts_of_another_table_and_tables_without_counts(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("c\nd\n")
    (tmp_path / "t").write_text("a b ||| x ||| 1 1 1 1 ||| 0-0\n")
    paths, texts = FilterPaths(tmp_path / "t", tmp_path / "o"), (str(tmp_path / "s"),) * 2
    with pytest.raises(DataError, match=r"no pair of .*t occurs in these texts"):
        prune_tables(paths, None, PruneConfig(prune_significance="a+e"), texts)
    for config in (PruneConfig(prune_count=2), PruneConfig(prune_entropy=1)):
        with pytest.raises(DataError, match=r"t: 'a b \|\|\| x' has no counts"):
            prune_tables(paths, None, config, texts)
    with pytest.raises(ConfigError, match="needs the text"):
        prune_tables(paths, None, PruneConfig(prune_significance="a+e"), None)
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    "config", [PruneConfig(prune_significance="a+e"), PruneConfig(prune_entropy=0.001)], ids=["a+e", "e"]
)
def test_random_rows_of_any_order(config: PruneConfig, corpus: TableInputs, tmp_path: Path) -> None:
    """An unsorted table loses the same rows."""
    rows = read_rows(corpus)
    random.Random(1).shuffle(rows)
    (tmp_path / "t").write_bytes(b"".join(row.raw + b"\n" for row in rows))
    texts = corpus.source, corpus.target
    prune_tables(FilterPaths(tmp_path / "t", tmp_path / "o", unsorted=True), None, config, texts)
    folder = Path(corpus.source).parent
    prune_tables(FilterPaths(folder / "table", tmp_path / "p"), None, config, texts)
    assert sorted((tmp_path / "o").read_bytes().split(b"\n")) == sorted(
        (tmp_path / "p").read_bytes().split(b"\n")
    )


# ---- relative entropy, against a recursion over all segmentations ------------------------------------------


Words = tuple[str, ...]
Key = tuple[Words, Words]


def row(source: Words, target: Words, p: float, count: int) -> PhrasePair:
    line = f"{' '.join(source)} ||| {' '.join(target)} ||| 0.5 0.5 {p:.17g} 0.5 ||| ||| 9 9 {count}"
    return phrase_table.parse(line.encode(), "table:1")


def kept(rows: list[PhrasePair], threshold: float) -> list[bool]:
    store = TablePairs()
    for block in rows[:3], rows[3:]:
        store.add(block, map(phrase_table.joint_count, block))
    return list(map(bool, store.keep(threshold)))


def segmentations(source: Words, target: Words) -> Iterator[list[Key]]:
    """All ways to cut both sides into the same number of parts, with one part too."""
    yield [(source, target)]
    for i in range(1, len(source)):
        for j in range(1, len(target)):
            for rest in segmentations(source[i:], target[j:]):
                yield [(source[:i], target[:j]), *rest]


def prune_naively(table: dict[Key, tuple[float, int]], threshold: float) -> set[Key]:
    """The pairs that stay, decided from short sources to long ones."""
    total = sum(count for _, count in table.values())
    stay = set(table)
    for source, target in sorted(table, key=lambda key: len(key[0])):
        p, count = table[source, target]
        composed = [
            sum(math.log(table[part][0]) for part in parts)
            for parts in segmentations(source, target)
            if len(parts) > 1 and all(part in stay for part in parts)
        ]
        if composed and count / total * (math.log(p) - max(composed)) < threshold:
            stay.discard((source, target))
    return stay


@pytest.mark.parametrize("threshold", [1e-9, 1e-4, 0.003, 1.0])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.ci
def test_equal_to_trying_all_segmentations(seed: int, threshold: float) -> None:
    rng = random.Random(seed)
    table: dict[Key, tuple[float, int]] = {}
    while len(table) < 250:
        source = tuple(rng.choice("ab") for _ in range(rng.randrange(1, 6)))
        target = tuple(rng.choice("bxy") for _ in range(rng.randrange(1, 6)))  # b is a word of both sides
        table[source, target] = rng.random() ** len(source), rng.randrange(1, 40)
    rows = [row(*key, *values) for key, values in table.items()]
    stay = prune_naively(table, threshold)
    assert kept(rows, threshold) == [key in stay for key in table]
    assert 0 < len(stay) < len(table)


def test_what_was_pruned_is_no_part() -> None:
    """'a b' goes, so 'a b c' is composed of three words, at a greater loss. Any counts of these shares."""
    count = 10**30
    words = [row((word,), (word,), 0.9, count) for word in "abc"]
    rows = [
        *words,
        row(("a", "b"), ("a", "b"), 0.82, count),
        row(("a", "b", "c"), ("a", "b", "c"), 0.75, count),
    ]
    loss = 10 / 50 * math.log(0.82 / 0.81), 10 / 50 * math.log(0.75 / 0.729)
    assert loss[0] < 0.004 < loss[1] < 0.006
    assert kept(rows, 0.004) == [True, True, True, False, True]
    assert kept(rows, 0.006) == [True, True, True, False, False]


def test_pairs_in_another_order_are_not_composed() -> None:
    rows = [row(("a",), ("x",), 1, 1), row(("b",), ("y",), 1, 1), row(("a", "b"), ("y", "x"), 1, 1)]
    assert kept(rows, 1e9) == [True, True, True]
