"""Chunks of a table: their values, whatever is resumed or reused."""

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from nmt.work import executors
from nmt.work.executors import Executor, ExecutorConfig
from smt_bridge.features.base import Values
from smt_bridge.features.feature_set import FeatureSet, Task
from smt_bridge.features.registry import FeatureSettings, parse_features
from smt_bridge.jobs import ScoringJob
from smt_bridge.tables import chunks
from smt_bridge.tables.chunks import OldTable, moses_score, read_columns, write_columns
from tests.smt_bridge.cli.scored_tables import ARPA, write_table

# ---- test chunks -------------------------------------------------------------------------------------------


def compute(task: Task) -> list[Values]:
    """Two features: the number in the target, and its square."""
    numbers = [[float(words[0]) for words in pairs.targets] for pairs in task]
    return [np.array(numbers[0]), np.array(numbers[1]) ** 2]


def begin() -> None:
    raise AssertionError("only this process computes")


def local() -> Executor[Task, list[Values]]:
    return executors.make(compute, begin, ExecutorConfig("local"))  # type: ignore[arg-type]


def table(numbers: Iterable[int]) -> list[PhrasePair]:
    return [phrase_table.parse(b"s%02d ||| %d ||| 1" % (number // 3, number), "t:1") for number in numbers]


def pieces() -> Iterator[list[PhrasePair]]:
    for start in (0, 9, 18):
        yield table(range(start, start + 9))


def test_values_of_every_pair() -> None:
    found = list(chunks.score_chunks(pieces(), local(), 2))
    assert np.concatenate([values for _, values in found]).tolist() == [[n, n * n] for n in range(27)]


def test_finished_chunks_are_taken_as_they_are(tmp_path: Path) -> None:
    ScoringJob(tmp_path, 2).add(np.full((9, 2), 0.5))
    found = [values for _, values in chunks.score_chunks(pieces(), local(), 2, ScoringJob(tmp_path, 2))]
    assert (
        (found[0] == 0.5).all() and found[1][0].tolist() == [9, 81] and ScoringJob(tmp_path, 2).count() == 3
    )


def test_known_values_are_not_computed(tmp_path: Path) -> None:
    """Of the first feature alone; the second one is new."""
    lines = [b"s%02d ||| %d ||| 1 0.25" % (number // 3, number) for number in (4, 5, 20)]
    (tmp_path / "old").write_bytes(b"".join(line + b"\n" for line in lines))
    write_columns(str(tmp_path / "old"), [{"column": 2, "identity": "first"}])
    old = OldTable(str(tmp_path / "old"), ["first", "second"])
    found = np.concatenate([values for _, values in chunks.score_chunks(pieces(), local(), 2, old=old)])
    assert (np.flatnonzero(found[:, 0] == np.log(0.25)) == [4, 5, 20]).all() and old.found == 3
    assert found[:, 1].tolist() == [n * n for n in range(27)] and found[6, 0] == 6


@pytest.mark.parametrize("count", [1, 3, 8, 9, 40, 100])
def test_a_survey_samples_the_whole_table(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smt_bridge.tables.chunks.CHUNK", 1)
    (tmp_path / "t").write_bytes(b"".join(b"s%03d ||| x ||| 1 2\n" % number for number in range(count)))
    found = chunks.survey(str(tmp_path / "t"))
    assert (found.pairs, found.sources, found.chunks, found.columns) == (count, count, count, 2)
    places = [int(piece[0].source[1:]) for piece in found.sample]
    steps = set(np.diff(places))
    assert (
        len(steps) <= 1 and places[0] == 0 and min(count, chunks.SAMPLES) <= len(places) <= 2 * chunks.SAMPLES
    )
    assert count - places[-1] <= max(steps, default=1)


def test_lines_have_the_new_scores_behind_the_old() -> None:
    (line,) = chunks.scored_lines(
        [phrase_table.parse(b"a ||| b ||| 0.5  1 ||| 0-0", "t:1")], np.log([[0.25, 2]])
    )
    assert line == b"a ||| b ||| 0.5  1 0.25 2 ||| 0-0"


def test_chunks_end_at_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [phrase_table.parse(b"s%d ||| t%d ||| 1" % (n // 3, n), "t:1") for n in range(30)]
    monkeypatch.setattr("smt_bridge.tables.chunks.CHUNK", 7)
    pieces = list(chunks.chunks(pairs))
    assert [pair for piece in pieces for pair in piece] == pairs
    assert [len(piece) for piece in pieces] == [9, 9, 9, 3]
    monkeypatch.setattr("smt_bridge.tables.chunks.LONGEST", 4)  # a source with more options than that is cut
    assert [len(piece) for piece in chunks.chunks([*pairs[:3], *[pairs[0]] * 20])] == [7, 7, 7, 2]


def test_scores_that_moses_can_hold() -> None:
    assert moses_score(math.log(0.25)) == b"0.25"
    assert moses_score(-1000.0) == moses_score(-math.inf) == b"1e-38"
    assert moses_score(3.0) == b"20.0855" and moses_score(1000.0) == b"3e+38"
    with pytest.raises(ValueError, match="not a number"):
        moses_score(math.nan)


# ---- test estimate -----------------------------------------------------------------------------------------
# The time of a table, estimated: on the sample of the survey, until it has taken long enough.


@pytest.mark.parametrize(("longest", "chunk_count"), [(30.0, None), (0.0, 1)])
def test_pairs_over_time(
    longest: float, chunk_count: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that ticks once a chunk: pairs a tick; after `LONGEST` no further chunk is begun."""
    monkeypatch.setattr("smt_bridge.tables.chunks.CHUNK", 8)
    monkeypatch.setattr("smt_bridge.tables.chunks.ESTIMATE_SECONDS", longest)
    write_table(tmp_path / "t")
    (tmp_path / "lm").write_text(ARPA)
    found = chunks.survey(str(tmp_path / "t"))
    features = FeatureSet(parse_features([f"lm={tmp_path / 'lm'}"]), FeatureSettings())
    asked = list[int]()
    whole = features.compute

    def compute(task: Task) -> object:
        asked.append(len(task[0]))
        return whole(task)

    monkeypatch.setattr(features, "compute", compute)
    monkeypatch.setattr("time.monotonic", lambda: 2.0 * len(asked))
    made = chunks.estimate(found, features)
    sizes = [len(piece) for piece in found.sample][:chunk_count]
    assert asked == sizes and made.measured == sum(sizes)
    assert made.rate == sum(sizes) / (2.0 * len(sizes)) and made.memory > 1


# ---- test reuse --------------------------------------------------------------------------------------------
# Columns of an earlier table, by the identity of what made them.


COLUMNS: list[dict[str, object]] = [{"column": 2, "identity": "x"}, {"column": 3, "identity": "y"}]


def old(tmp_path: Path, identities: list[str]) -> OldTable:
    (tmp_path / "t").write_bytes(b"a ||| x ||| 1 0.5 0.25\nb ||| x ||| 1 0 0.125\n")
    write_columns(str(tmp_path / "t"), COLUMNS)
    return OldTable(str(tmp_path / "t"), identities)


def test_values_are_found_by_identity(tmp_path: Path) -> None:
    table = old(tmp_path, ["y", "new", "x"])
    pairs = [
        phrase_table.parse(line, "t:1") for line in (b"a ||| w ||| 1", b"a ||| x ||| 1", b"b ||| x ||| 1")
    ]
    found = np.concatenate([table.find(pairs[:1]), table.find(pairs[1:])])
    assert np.isnan(found[0]).all() and np.isnan(found[:, 1]).all()
    assert found[1, 0] == math.log(0.25) and found[1, 2] == math.log(0.5) and found[2, 0] == math.log(0.125)
    assert math.isfinite(found[2, 2]) and (table.found, table.asked) == (2, 3)


def test_a_table_of_other_runs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of its columns was made by these runs"):
        old(tmp_path, ["z"])


@pytest.mark.parametrize("text", ["{", "[]", '{"columns": 7}', json.dumps({"columns": [{"identity": "x"}]})])
def test_damaged_columns(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.scores.json").write_text(text)
    with pytest.raises(DataError, match=r"t\.scores\.json: damaged; score the table again"):
        read_columns(str(tmp_path / "t"))
    with pytest.raises(DataError, match="smt-score-table writes it beside its output"):
        read_columns(str(tmp_path / "other"))
