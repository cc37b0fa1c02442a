"""Extraction and scoring against the obvious way, in dictionaries; the sort on disk; the real Moses tables;
the same bytes by several workers, whatever the shards and buckets, and after kills and damage."""

import gzip
import itertools
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.io import files
from nmt.work.executors import ExecutorConfig
from nmt.work.stages import SharedFolder
from smt_bridge.extraction import scores, tables
from smt_bridge.extraction.config import ExtractConfig
from smt_bridge.extraction.instances import UINT
from smt_bridge.extraction.scores import MAX_COUNT, CorpusTotals, WordTable, larger_alignment, write_tables
from smt_bridge.extraction.tables import TableInputs, TableOutputs
from smt_bridge.moses.reordering import ReorderingType
from tests.conftest import ROOT, Command
from tests.nmt.work import clusters

Links = list[tuple[int, int]]
Corpus = list[tuple[list[str], list[str], Links]]


def random_corpus(seed: int, pairs: int, words: int) -> Corpus:
    """Sentences with unlinked words, links of one to many, and crossings. `}` and `é` sort behind `|`, `!`
    and \\x01 around a blank."""
    rng = random.Random(seed)
    names = ["a", "a!", "b", "}x", "é", "a\x01", "&apos;", "\u00a0n"][:words]
    corpus = []
    for _ in range(pairs):
        n, m = rng.randint(1, 9), rng.randint(1, 9)
        links = sorted({(rng.randrange(n), rng.randrange(m)) for _ in range(rng.randint(0, 8))})
        corpus.append(([rng.choice(names) for _ in range(n)], [rng.choice(names) for _ in range(m)], links))
    corpus[0] = (["a", "b"], ["b", "a"], [(0, 1), (1, 0)])
    return corpus


def write(corpus: Corpus, folder: Path) -> TableInputs:
    for name, lines in (
        ("s", [" ".join(source) for source, _, _ in corpus]),
        ("t", [" ".join(target) for _, target, _ in corpus]),
        ("a", [" ".join(f"{i}-{j}" for i, j in links) for _, _, links in corpus]),
    ):
        (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
    return TableInputs(str(folder / "s"), str(folder / "t"), str(folder / "a"))


Span = tuple[int, int, int, int]  # first and last source word, first and last target word


def consistent_spans(n: int, m: int, links: Links, longest: int) -> list[Span]:
    """Every consistent pair of spans, by trying all spans."""
    spans = []
    for a, c in itertools.product(range(n), range(m)):
        for b, d in itertools.product(range(a, min(n, a + longest)), range(c, min(m, c + longest))):
            inside = any(a <= i <= b and c <= j <= d for i, j in links)
            if inside and all((a <= i <= b) == (c <= j <= d) for i, j in links):
                spans.append((a, b, c, d))
    return spans


def orientations(span: Span, links: Links, n: int, m: int, touching: list[Span], words: bool) -> list[int]:
    """Both orientations of a pair, by the rules of Moses' extract: 0 monotone, 1 swap, 2 left, 3 right.
    `touching`: pairs beside links; `words`: whether only links count."""
    a, b, c, d = span
    linked = {*links, (-1, -1), (n, m)}
    before, behind = ([(x, y) for x, y, _, end in touching if end == row] for row in (c - 1, d + 1))
    if words:
        before, behind = ([(i, i) for i, j in links if j == row] for row in (c - 1, d + 1))
    ways = []
    for pairs, row, straight, crossed in ((before, c - 1, a - 1, b + 1), (behind, d + 1, b + 1, a - 1)):
        marks = [(straight, row) in linked, (crossed, row) in linked]
        lasts, firsts = {y for _, y in pairs}, {x for x, _ in pairs}
        if words:
            near = far = False
        elif pairs is before:
            near, far = a - 1 in lasts, b + 1 in firsts
        else:
            near, far = b + 1 in firsts, a - 1 in lasts
        most = n if words else n - 1  # Moses leaves out the last source word
        on_left, on_right = any(y < a for y in lasts), any(b < x < most for x in firsts)
        ahead, across = (on_left, on_right) if pairs is before else (on_right, on_left)
        if marks == [True, False] or near:
            ways.append(0)
        elif marks == [False, True] or far:
            ways.append(1)
        else:
            ways.append(2 if across and not ahead else 3)
    return ways


DEFAULT = "wbe-msd-bidirectional-fe"
KINDS = {"msd": [0, 1, 2, 2], "mslr": [0, 1, 2, 3], "monotonicity": [0, 1, 1, 1], "leftright": [0, 1, 1, 0]}


def instances(
    source: list[str], target: list[str], links: Links, longest: int, model: str = "wbe"
) -> list[tuple[str, str, Links, int, int]]:
    """Every consistent pair of spans with both orientations."""
    n, m = len(source), len(target)
    touching = consistent_spans(n, m, links, 99 if model == "hier" else longest)
    rows = []
    for a, b, c, d in consistent_spans(n, m, links, longest):
        ways = orientations((a, b, c, d), links, n, m, touching, model == "wbe")
        shifted = [(i - a, j - c) for i, j in links if a <= i <= b]
        rows.append((" ".join(source[a : b + 1]), " ".join(target[c : d + 1]), shifted, ways[0], ways[1]))
    return rows


def by_sets(points: Links, side: int, length: int) -> list[list[int]]:
    """Moses' vector of sets: for each word of one side the words it is linked to."""
    return [sorted(p[1 - side] for p in points if p[side] == word) for word in range(length)]


def smoothed_shares(ways: list[tuple[int, int]], reordering_type: str) -> str:
    """The reordering probabilities of a pair by definition. `ways`: both orientations of each instance."""
    _, kinds, direction, _ = reordering_type.split("-")
    columns, size = KINDS[kinds], 1 + max(KINDS[kinds])
    sides = {"bidirectional": (0, 1), "backward": (0,), "forward": (1,)}[direction]
    counts = [sum(columns[way[side]] == kind for way in ways) for side in sides for kind in range(size)]
    return " ".join(f"{(count + 0.5) / (len(ways) + 0.5 * size):.6g}" for count in counts)


def naive(corpus: Corpus, longest: int, reordering_type: str = DEFAULT) -> tuple[list[str], list[str]]:
    """Both tables by definition."""
    model = reordering_type.split("-")[0]
    lex: Counter[tuple[str, str]] = Counter()
    pairs: dict[tuple[str, str], list[tuple[Links, int, int]]] = {}
    for source, target, links in corpus:
        for i, j in links:
            lex[source[i], target[j]] += 1
        for j, word in enumerate(target):
            lex["NULL", word] += all(b != j for _, b in links)
        for i, word in enumerate(source):
            lex[word, "NULL"] += all(a != i for a, _ in links)
        for s, t, points, before, behind in instances(source, target, links, longest, model):
            pairs.setdefault((s, t), []).append((points, before, behind))
    of_source: Counter[str] = Counter()
    of_target: Counter[str] = Counter()
    for (a, b), count in lex.items():
        of_source[a] += count
        of_target[b] += count
    c_source: Counter[str] = Counter()
    c_target: Counter[str] = Counter()
    for (s, t), held in pairs.items():
        c_source[s] += len(held)
        c_target[t] += len(held)

    def best(held: list[tuple[Links, int, int]], side: int, length: int) -> Links:
        counts = Counter(tuple(sorted(points)) for points, _, _ in held)
        return list(
            max(counts, key=lambda points: (counts[tuple(points)], by_sets(list(points), side, length)))
        )

    def weight(points: Links, own: list[str], other: list[str], side: int) -> float:
        total = 1.0
        for word, partners in zip(own, by_sets(points, side, len(own)), strict=True):
            given = [other[partner] for partner in partners] or ["NULL"]
            keys = [(partner, word) if side == 1 else (word, partner) for partner in given]
            sums = of_source if side == 1 else of_target
            total *= sum(
                round(lex[key] / sums[partner], 7) for key, partner in zip(keys, given, strict=True)
            ) / len(given)
        return total

    table, reordering = [], []
    for (s, t), held in pairs.items():
        source, target = s.split(" "), t.split(" ")
        direct, inverse = best(held, 1, len(target)), best(held, 0, len(source))
        scores = [
            len(held) / c_target[t],
            weight(inverse, source, target, 0),
            len(held) / c_source[s],
            weight(direct, target, source, 1),
        ]
        shape = " ".join(f"{i}-{j}" for i, j in sorted(direct, key=lambda p: (p[1], p[0])))
        table.append(
            f"{s} ||| {t} ||| {' '.join(f'{x:.6g}' for x in scores)} ||| {shape} ||| {c_target[t]} "
            f"{c_source[s]} {len(held)} ||| |||"
        )
        ways = [orientations[1:] for orientations in held]
        reordering.append(f"{s} ||| {t} ||| {smoothed_shares(ways, reordering_type)}")
    return sorted(table, key=str.encode), sorted(reordering, key=str.encode)


@pytest.mark.parametrize(
    ("seed", "pairs", "words", "longest"), [(1, 40, 8, 7), (2, 60, 3, 7), (3, 30, 8, 8), (4, 40, 5, 2)]
)
def test_tables_by_definition(seed: int, pairs: int, words: int, longest: int, tmp_path: Path) -> None:
    corpus = random_corpus(seed, pairs, words)
    inputs = write(corpus, tmp_path)
    outputs = TableOutputs(str(tmp_path / "table"), str(tmp_path / "reordering"))
    tables.build(inputs, outputs, ExtractConfig(longest, block=20))
    table, reordering = naive(corpus, longest)
    assert (tmp_path / "table").read_text(encoding="utf-8").split("\n")[:-1] == table
    assert (tmp_path / "reordering").read_text(encoding="utf-8").split("\n")[:-1] == reordering


TYPES = [f"{model}-{kinds}-bidirectional-fe" for model in ("wbe", "phrase", "hier") for kinds in KINDS]


@pytest.mark.parametrize(
    ("reordering", "seed"),
    [(name, 5) for name in TYPES]
    + [("hier-mslr-backward-fe", 6), ("phrase-mslr-forward-fe", 7), ("hier-mslr-bidirectional-fe", 8)],
)
@pytest.mark.ci
def test_types_of_reordering_by_definition(reordering: str, seed: int, tmp_path: Path) -> None:
    """Short phrases, so that hierarchical and phrase-based orientations differ."""
    corpus = random_corpus(seed, 80, 8)
    config = ExtractConfig(2, reordering_type=reordering, block=20)
    tables.build(write(corpus, tmp_path), TableOutputs(str(tmp_path / "t"), str(tmp_path / "r")), config)
    rows = (tmp_path / "r").read_text(encoding="utf-8").split("\n")[:-1]
    assert rows == naive(corpus, 2, reordering)[1]


def test_an_unknown_type_of_reordering(tmp_path: Path) -> None:
    inputs = write(random_corpus(1, 2, 3), tmp_path)
    for name in ("wbe-msd", "hier-msd-bidirectional-f", "hier-msdx-bidirectional-fe", ""):
        with pytest.raises(ConfigError, match="expected a reordering type"):
            tables.build(inputs, TableOutputs(str(tmp_path / "t")), ExtractConfig(reordering_type=name))


@pytest.mark.ci
def test_there_are_as_many_buckets_as_memory_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for 40 rows, where the whole is 2,000; nothing is left of the folder of the work."""
    inputs = write(random_corpus(7, 120, 3), tmp_path)
    told: list[tuple[int, int]] = []
    config = ExtractConfig(block=50)
    whole, parts = (TableOutputs(str(tmp_path / name)) for name in ("whole", "parts"))
    tables.build(inputs, whole, config, lambda done, total: told.append((done, total)))
    assert len(told) > 3 and told[0][0] < told[-1][0] == told[-1][1]  # words, up to all of them
    sizes = []
    distinct = scores.distinct_pairs

    def noted(rows: UINT, reordering: ReorderingType) -> scores.PhrasePairs:
        sizes.append(len(rows))
        return distinct(rows, reordering)

    monkeypatch.setattr(scores, "distinct_pairs", noted)
    monkeypatch.setattr(tables, "rows_in_memory", lambda config, width: 40)
    tables.build(inputs, parts, config)
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "parts").read_bytes()
    assert len(sizes) > 30 and np.median(sizes) < 40
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "parts", "s", "t", "whole"]


def test_larger_is_moses_comparison() -> None:
    rng = random.Random(2)
    for _ in range(2000):
        one, other = (
            [(rng.randrange(3), rng.randrange(3)) for _ in range(rng.randint(0, 5))] for _ in range(2)
        )
        squares = [sum(1 << (8 * i + j) for i, j in set(points)) for points in (one, other)]
        for side, by_target in ((1, True), (0, False)):
            expected = by_sets(list(set(one)), side, 3) > by_sets(list(set(other)), side, 3)
            assert larger_alignment(np.uint64(squares[0]), np.uint64(squares[1]), by_target) == expected


def numbers(path: Path) -> dict[tuple[str, str], tuple[list[float], list[int]]]:
    found = {}
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        source, target, scores, _, counts = line.split(" ||| ")[:5]
        found[source, target] = ([float(x) for x in scores.split()], [int(x) for x in counts.split()[:3]])
    return found


@pytest.mark.ci
def test_smoothing(tmp_path: Path) -> None:
    """Good-Turing multiplies a count by (c + 1) n[c+1] / (c n[c]); Kneser-Ney takes D(c) and gives D n(s)
    n(t) / N back: by hand from the counts."""
    inputs = write(random_corpus(9, 300, 5), tmp_path)
    made = {}
    for smoothing in ("none", "good-turing", "kneser-ney"):
        config = ExtractConfig(smoothing=smoothing, buckets=3)
        tables.build(inputs, TableOutputs(str(tmp_path / smoothing)), config)
        made[smoothing] = numbers(tmp_path / smoothing)
    n = Counter(joint for _, (_, _, joint) in made["none"].values())
    partners_s = Counter(source for source, _ in made["none"])
    partners_t = Counter(target for _, target in made["none"])
    y = n[1] / (n[1] + 2 * n[2])
    for pair, (plain, (of_target, of_source, joint)) in made["none"].items():
        factor = (
            min(1.0, (joint + 1) * n[joint + 1] / (joint * n[joint])) if joint <= 10 and n[joint + 1] else 1.0
        )
        turing, kneser = made["good-turing"][pair][0], made["kneser-ney"][pair][0]
        assert math.isclose(turing[0], factor * plain[0], rel_tol=1e-4) and math.isclose(
            turing[2], factor * plain[2], rel_tol=1e-4
        )
        c = min(joint, 3)
        discount = min(c - (c + 1) * y * n[c + 1] / n[c], joint - 0.01)
        adjusted = joint - discount + discount * partners_s[pair[0]] * partners_t[pair[1]] / len(made["none"])
        assert math.isclose(kneser[0], adjusted / of_target, rel_tol=1e-4) and math.isclose(
            kneser[2], adjusted / of_source, rel_tol=1e-4
        )
        assert turing[1] == kneser[1] == plain[1]


def test_no_word_pair_is_impossible() -> None:
    """Nor is one that 7 decimals would round to 0, as in large corpora with NULL."""
    lexicon = WordTable(4)
    lexicon.join(np.array([1, 2]), np.array([10**8, 1]))
    lexicon.finish()
    assert lexicon.direct.tolist() == [1, 1e-7] and lexicon.inverse.tolist() == [1, 1]


def test_without_counts_of_counts_nothing_is_discounted() -> None:
    totals = CorpusTotals()
    totals.add(np.array([7, 9]))
    assert totals.good_turing().tolist() == [1.0] * (MAX_COUNT + 1) and not totals.kneser_ney().any()


@pytest.mark.ci
def test_real_tables_are_moses_own(nmt_data: Path, tmp_path: Path, command: Command) -> None:
    """839,168 pairs of the real train-model.perl: the same pairs, phi equal, all scores within 1e-3; the
    reordering table byte by byte."""
    real = nmt_data / "moses-multi30k"
    out = [tmp_path / name for name in ("table.gz", "reordering.gz")]
    texts = "-s corpus/train.tok.en -t corpus/train.tok.fr -a aligned.grow-diag-final-and.gz".split()
    done = command("smt-extract", *texts, "-o", out[0], "--reordering", out[1], cwd=real, timeout=1200)
    assert done.returncode == 0, done.stderr
    assert "839,168 phrase pairs" in done.stderr
    rows = phi = close = 0
    with (
        gzip.open(out[0], "rt", encoding="utf-8", newline="\n") as ours,
        gzip.open(real / "phrase-table.gz", "rt", encoding="utf-8", newline="\n") as theirs,
    ):
        for one, other in zip(ours, theirs, strict=True):
            rows += 1
            if one == other:
                phi += 1
                close += 1
                continue
            a, b = one.split(" ||| "), other.split(" ||| ")
            assert (a[:2], a[3:]) == (b[:2], b[3:])
            pairs = [(float(x), float(y)) for x, y in zip(a[2].split(), b[2].split(), strict=True)]
            phi += all(math.isclose(*pairs[place], rel_tol=1e-5) for place in (0, 2))
            close += all(math.isclose(*pair, rel_tol=1e-3) for pair in pairs)
    assert rows == phi == 839_168 and close == rows
    with (
        gzip.open(out[1]) as ours_,
        gzip.open(real / "reordering-table.wbe-msd-bidirectional-fe.gz") as theirs_,
    ):
        assert ours_.read() == theirs_.read()


def test_both_tables_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    table, reordering = str(tmp_path / "table"), str(tmp_path / "reordering")

    def failing() -> Iterator[tuple[list[str], list[str]]]:
        yield ["a"], ["b"]
        raise ValueError

    with pytest.raises(ValueError):
        write_tables(table, reordering, failing())
    assert not list(tmp_path.iterdir())
    write_tables(table, reordering, [(["1", "2"], ["x", "y"]), (["3"], ["z"])])
    assert (tmp_path / "table").read_text() == "1\n2\n3\n"
    assert (tmp_path / "reordering").read_text() == "x\ny\nz\n"
    write_tables(str(tmp_path / "only"), None, [(["1"], ["x"])])
    assert (tmp_path / "only").read_text() == "1\n"


# ---- several workers ---------------------------------------------------------------------------------------


ALL = ("", ".r", ".lex.e2f", ".lex.f2e")
ODD: dict[str, Corpus] = {
    "one pair": [(["a"], ["x"], [(0, 0)])],
    "no pair": [(["a", "b"], ["x"], [])],  # no link, no phrase
    "all equal": [(["a", "b"], ["x", "y"], [(0, 1), (1, 0)])] * 30,
    "empty lines": [([], [], []), (["a"], ["x"], [(0, 0)]), ([], ["y"], []), (["b"], [], []), ([], [], [])],
}


def outputs(folder: Path, name: str) -> TableOutputs:
    return TableOutputs(str(folder / name), str(folder / f"{name}.r"), str(folder / f"{name}.lex"))


class Both:
    """An extraction in a folder, by one process in one piece, and by workers with settings of their own."""

    def __init__(self, folder: Path, corpus: Corpus, config: ExtractConfig) -> None:
        self.folder, self.inputs, self.config = folder, write(corpus, folder), config

    def alone(self) -> int:
        config = replace(self.config, block=1 << 30, buckets=1)
        return tables.build(self.inputs, outputs(self.folder, "one"), config)

    def shared(
        self,
        executor: ExecutorConfig | None = None,
        resume: bool = False,
        progress: tables.Report = lambda done, total: None,
    ) -> int:
        job = SharedFolder(self.folder / "job", "smt-extract", resume)
        return tables.build(self.inputs, outputs(self.folder, "many"), self.config, progress, executor, job)

    def same(self) -> bool:
        """Are all files those of one process? And the folder of the job is gone."""
        assert not (self.folder / "job").exists()
        files = [[(self.folder / f"{name}{end}").read_bytes() for end in ALL] for name in ("one", "many")]
        return files[0] == files[1]


@pytest.mark.parametrize(
    ("buckets", "block", "smoothing"),
    [
        pytest.param(1, 20, "none", marks=pytest.mark.ci),
        (3, 100, "kneser-ney"),
        pytest.param(40, 10_000, "good-turing", marks=pytest.mark.ci),
    ],
)
def test_shards_and_buckets_change_nothing(buckets: int, block: int, smoothing: str, tmp_path: Path) -> None:
    config = ExtractConfig(smoothing=smoothing, block=block, buckets=buckets)
    both = Both(tmp_path, random_corpus(7, 60, 8), config)
    told: list[tuple[int, int]] = []
    assert both.shared(progress=lambda done, total: told.append((done, total))) == both.alone()
    assert both.same()
    done, totals = zip(*told, strict=True)
    assert list(done) == sorted(done) and {*totals} == {done[-1]}, "to the end, after every task"
    shards = 1 if block == 10_000 else 6
    assert len(told) >= shards + 3 * buckets + 1


@pytest.mark.parametrize("name", ODD)
def test_odd_corpora(name: str, tmp_path: Path) -> None:
    both = Both(tmp_path, ODD[name], ExtractConfig(block=3, buckets=4))
    assert both.alone() == both.shared() and both.same()


def test_bad_input_is_named_with_its_line_and_leaves_nothing(tmp_path: Path) -> None:
    both = Both(tmp_path, random_corpus(7, 30, 3), ExtractConfig(block=50))
    lines = (tmp_path / "t").read_text().split("\n")
    lines[24] = "a|b"
    (tmp_path / "t").write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"t:25: '\|' in 'a\|b'"):
        both.shared()
    assert {path.name for path in tmp_path.iterdir()} == {"s", "t", "a"}


class Stop(Exception):
    """In the middle of a job."""


@pytest.mark.parametrize(
    "stage",
    [
        tables.COUNT,
        *(pytest.param(name, marks=pytest.mark.ci) for name in tables.STAGES if name != tables.COUNT),
    ],
)
def test_what_is_finished_is_not_computed_again(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job ends in each of its stages, and a file of the first one is damaged: with --resume it computes
    that file and what is missing, and ends with the same bytes."""
    both = Both(tmp_path, random_corpus(7, 60, 8), ExtractConfig(block=150, buckets=3))
    both.alone()
    whole = tables.ExtractionWorker.compute_parts

    def run(resume: bool) -> list[tuple[str, int]]:
        """The tasks that were computed."""
        computed: list[tuple[str, int]] = []

        def noted(worker: tables.ExtractionWorker, name: str, number: int) -> object:
            if not resume and (name, number) == (stage, 1):
                raise Stop
            computed.append((name, number))
            return whole(worker, name, number)

        monkeypatch.setattr(tables.ExtractionWorker, "compute_parts", noted)
        both.shared(resume=resume)
        return computed

    with pytest.raises(Stop):
        run(resume=False)
    with pytest.raises(ConfigError, match="an unfinished job; --resume continues it"):
        run(resume=False)
    done = tmp_path / "job" / tables.SURVEY / "00000"
    done.write_bytes(done.read_bytes()[:-1] + b"!")
    again = run(resume=True)
    assert (tables.SURVEY, 0) in again and (stage, 1) in again
    names = list(tables.STAGES)
    before = names[1 : names.index(stage)]
    assert not [task for task in again if task[0] in before]
    assert ((stage, 0) in again) == (stage == tables.SURVEY)
    assert both.same()


def test_a_damaged_bucket_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is noticed by the task that reads it."""
    both = Both(tmp_path, random_corpus(7, 60, 8), ExtractConfig(block=150, buckets=3))
    both.alone()
    whole = tables.total_bucket

    def damaging(worker: tables.ExtractionWorker, number: int) -> object:
        bucket = tmp_path / "job" / tables.COUNT / "00001"
        bucket.write_bytes(bucket.read_bytes()[: bucket.stat().st_size // 2])
        return whole(worker, number)

    with monkeypatch.context() as patch:
        patch.setitem(tables.STAGES, tables.TOTALS, damaging)
        with pytest.raises(UserError, match=r"job/count/00001: missing or damaged; .* --resume"):
            both.shared()
    both.shared(resume=True)
    assert both.same()


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    both = Both(tmp_path, ODD["one pair"], ExtractConfig())
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "letter").touch()
    with pytest.raises(ConfigError, match="job: is not empty, and not the folder of a job"):
        both.shared()
    assert (tmp_path / "job" / "letter").exists()


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with clusters.cluster(tmp_path_factory.mktemp("cluster")) as where:
        yield where


@pytest.mark.ci
def test_processes_and_a_cluster(two_workers: str, tmp_path: Path) -> None:
    config = ExtractConfig(smoothing="kneser-ney", block=150, buckets=5)
    both = Both(tmp_path, random_corpus(7, 60, 8), config)
    both.alone()
    for executor in (ExecutorConfig(workers=3), ExecutorConfig(cluster=two_workers)):
        both.shared(executor)
        assert both.same()


@pytest.mark.ci
def test_a_killed_command_resumes(tmp_path: Path) -> None:
    """kill -9, as soon as phrase pairs are counted."""
    both = Both(tmp_path, random_corpus(7, 2000, 8), ExtractConfig())
    both.alone()
    line = "-q -s s -t t -a a -o many --reordering many.r --lexical many.lex --work job --workers 2".split()
    line = [sys.executable, "-m", "smt_bridge.cli.extract", *line]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(line, cwd=tmp_path, env=environment)
    while not (tmp_path / "job" / tables.COUNT).exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "many").exists()
    subprocess.run([*line, "--resume"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert both.same()


@pytest.mark.ci
def test_real_sentences_by_several_workers(nmt_data: Path, tmp_path: Path) -> None:
    """500 of Multi30k, with the alignment of Moses."""
    both = Both(tmp_path, ODD["one pair"], ExtractConfig(block=3000, buckets=6))
    real = nmt_data / "moses-multi30k"
    for name, path in (
        ("s", "corpus/train.tok.en"),
        ("t", "corpus/train.tok.fr"),
        ("a", "aligned.grow-diag-final-and.gz"),
    ):
        files.write_text(tmp_path / name, islice(files.read_lines(real / path), 500))
    assert both.alone() == both.shared(ExecutorConfig(workers=2)) and both.same()


def test_a_sample_counts_instances() -> None:
    corpus = random_corpus(3, 20, 8)
    lines = [
        (" ".join(source), " ".join(target), " ".join(f"{i}-{j}" for i, j in links))
        for source, target, links in corpus
    ]
    expected = sum(len(instances(*pair, 5)) for pair in corpus)
    words = sum(len(source) + len(target) for source, target, _ in corpus)
    assert tables.sample_instances(lines, 5) == (expected, words)
