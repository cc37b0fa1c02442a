"""New columns of a table: chunks, whatever is resumed or reused; smt_bridge.score_table; the report."""

import gzip
import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

import smt_bridge
from nmt.errors import ConfigError, DataError, UserError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair
from nmt.work import executors
from nmt.work.executors import EXECUTORS, Executor, ExecutorConfig
from smt_bridge.features.base import PairFeature, SideReader, Values, WordPairs
from smt_bridge.features.feature_set import FeatureSet, Task
from smt_bridge.features.registry import FeatureSettings, parse_features
from smt_bridge.jobs import ScoringJob
from smt_bridge.tables import score
from smt_bridge.tables.report import TableReport
from smt_bridge.tables.score import OldTable, moses_score, read_columns, write_columns
from tests.nmt.work.lossy import Losing
from tests.smt_bridge.cli.scored_tables import ARPA, write_table

# ---- chunks ------------------------------------------------------------------------------------------------


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
    found = list(score.score_chunks(pieces(), local(), 2))
    assert np.concatenate([values for _, values in found]).tolist() == [[n, n * n] for n in range(27)]


def test_finished_chunks_are_taken_as_they_are(tmp_path: Path) -> None:
    ScoringJob(tmp_path, 2).add(np.full((9, 2), 0.5))
    found = [values for _, values in score.score_chunks(pieces(), local(), 2, ScoringJob(tmp_path, 2))]
    assert (found[0] == 0.5).all() and found[1][0].tolist() == [9, 81]
    assert ScoringJob(tmp_path, 2).count() == 3


def test_known_values_are_not_computed(tmp_path: Path) -> None:
    """Of the first feature alone; the second one is new."""
    lines = [b"s%02d ||| %d ||| 1 0.25" % (number // 3, number) for number in (4, 5, 20)]
    (tmp_path / "old").write_bytes(b"".join(line + b"\n" for line in lines))
    write_columns(str(tmp_path / "old"), [{"column": 2, "identity": "first"}])
    old = OldTable(str(tmp_path / "old"), ["first", "second"])
    found = np.concatenate([values for _, values in score.score_chunks(pieces(), local(), 2, old=old)])
    assert (np.flatnonzero(found[:, 0] == np.log(0.25)) == [4, 5, 20]).all() and old.matches == 3
    assert found[:, 1].tolist() == [n * n for n in range(27)] and found[6, 0] == 6


@pytest.mark.parametrize("count", [1, 3, 8, 9, 40, 100])
def test_a_survey_samples_the_whole_table(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smt_bridge.tables.score.CHUNK", 1)
    (tmp_path / "t").write_bytes(b"".join(b"s%03d ||| x ||| 1 2\n" % number for number in range(count)))
    found = score.read_survey(str(tmp_path / "t"))
    assert (found.pairs, found.sources, found.chunks, found.columns) == (count, count, count, 2)
    indices = [int(piece[0].source[1:]) for piece in found.sample]
    steps = set(np.diff(indices))
    assert len(steps) <= 1 and indices[0] == 0 and count - indices[-1] <= max(steps, default=1)
    assert min(count, score.SAMPLES) <= len(indices) <= 2 * score.SAMPLES


def test_lines_have_the_new_scores_behind_the_old() -> None:
    pair = phrase_table.parse(b"a ||| b ||| 0.5  1 ||| 0-0", "t:1")
    (line,) = score.scored_lines([pair], np.log([[0.25, 2]]))
    assert line == b"a ||| b ||| 0.5  1 0.25 2 ||| 0-0"


def test_chunks_end_at_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [phrase_table.parse(b"s%d ||| t%d ||| 1" % (n // 3, n), "t:1") for n in range(30)]
    monkeypatch.setattr("smt_bridge.tables.score.CHUNK", 7)
    pieces = list(score.cut_chunks(pairs))
    assert [pair for piece in pieces for pair in piece] == pairs
    assert [len(piece) for piece in pieces] == [9, 9, 9, 3]
    monkeypatch.setattr("smt_bridge.tables.score.LONGEST", 4)  # a source with more options than that is cut
    assert [len(piece) for piece in score.cut_chunks([*pairs[:3], *[pairs[0]] * 20])] == [7, 7, 7, 2]


def test_scores_that_moses_can_hold() -> None:
    assert moses_score(math.log(0.25)) == b"0.25"
    assert moses_score(-1000.0) == moses_score(-math.inf) == b"1e-38"
    assert moses_score(3.0) == b"20.0855" and moses_score(1000.0) == b"3e+38"
    with pytest.raises(ValueError, match="not a number"):
        moses_score(math.nan)


@pytest.mark.parametrize(("longest", "chunk_count"), [(30.0, None), (0.0, 1)])
def test_pairs_over_time(
    longest: float, chunk_count: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that ticks once a chunk: pairs a tick; after `LONGEST` no further chunk is begun."""
    monkeypatch.setattr("smt_bridge.tables.score.CHUNK", 8)
    monkeypatch.setattr("smt_bridge.tables.score.ESTIMATE_SECONDS", longest)
    write_table(tmp_path / "t")
    (tmp_path / "lm").write_text(ARPA)
    found = score.read_survey(str(tmp_path / "t"))
    features = FeatureSet(parse_features([f"lm={tmp_path / 'lm'}"]), FeatureSettings())
    asked = list[int]()
    whole = features.compute

    def compute(task: Task) -> object:
        asked.append(len(task[0]))
        return whole(task)

    monkeypatch.setattr(features, "compute", compute)
    monkeypatch.setattr("time.monotonic", lambda: 2.0 * len(asked))
    made = score.estimate_speed(found, features)
    sizes = [len(piece) for piece in found.sample][:chunk_count]
    assert asked == sizes and made.measured == sum(sizes)
    assert made.rate == sum(sizes) / (2.0 * len(sizes)) and made.memory > 1


def old(tmp_path: Path, identities: list[str]) -> OldTable:
    (tmp_path / "t").write_bytes(b"a ||| x ||| 1 0.5 0.25\nb ||| x ||| 1 0 0.125\n")
    write_columns(str(tmp_path / "t"), [{"column": 2, "identity": "x"}, {"column": 3, "identity": "y"}])
    return OldTable(str(tmp_path / "t"), identities)


def test_values_are_found_by_identity(tmp_path: Path) -> None:
    table = old(tmp_path, ["y", "new", "x"])
    pairs = [phrase_table.parse(b"%b ||| 1" % pair, "t:1") for pair in (b"a ||| w", b"a ||| x", b"b ||| x")]
    found = np.concatenate([table.find(pairs[:1]), table.find(pairs[1:])])
    assert np.isnan(found[0]).all() and np.isnan(found[:, 1]).all()
    assert found[1, 0] == math.log(0.25) and found[1, 2] == math.log(0.5) and found[2, 0] == math.log(0.125)
    assert math.isfinite(found[2, 2]) and (table.matches, table.lookups) == (2, 3)


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


# ---- score_table -------------------------------------------------------------------------------------------


@pytest.fixture
def folder(examples: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(examples)
    monkeypatch.setattr("smt_bridge.tables.score.CHUNK", 500)
    return examples


def test_progress_counts_up_to_the_table(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    done = smt_bridge.score_table(
        "table.gz", "o.gz", ["lm=lm.arpa"], progress=lambda pairs, total: seen.append((pairs, total))
    )
    lines = gzip.decompress((folder / "o.gz").read_bytes()).split(b"\n")[:-1]
    assert done.pairs == len(lines) and done.columns == 5
    assert seen[0] == (0, done.pairs) and seen[-1] == (done.pairs, done.pairs) and len(seen) > 3
    assert seen == sorted(seen)


def test_a_resumed_job_starts_where_it_was(folder: Path) -> None:
    def interrupt(pairs: int, total: int) -> None:
        if pairs > 1000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        smt_bridge.score_table("table.gz", "o", ["lm=lm.arpa"], progress=interrupt)
    assert (folder / "o.job" / "scores").exists() and not (folder / "o").exists()
    seen: list[int] = []
    done = smt_bridge.score_table(
        "table.gz", "o", ["lm=lm.arpa"], resume=True, progress=lambda pairs, total: seen.append(pairs)
    )
    assert 1000 < seen[0] < done.pairs == seen[-1] and not (folder / "o.job").exists()
    smt_bridge.score_table("table.gz", "whole", ["lm=lm.arpa"])
    assert (folder / "o").read_bytes() == (folder / "whole").read_bytes()


def test_shards_are_the_table(folder: Path) -> None:
    for number in (1, 2, 3):
        smt_bridge.score_table("table.gz", f"part{number}", ["lm=lm.arpa"], shard=(number, 3))
    smt_bridge.score_table("table.gz", "whole", ["lm=lm.arpa"])
    parts = [(folder / f"part{number}").read_bytes() for number in (1, 2, 3)]
    assert b"".join(parts) == (folder / "whole").read_bytes() and all(parts)


def refused(folder: Path, message: str, call: Callable[[], object]) -> None:
    with pytest.raises(ConfigError, match=message):
        call()
    assert not (folder / "o").exists() and not (folder / "o.job").exists()


def test_refusals_before_any_work(folder: Path) -> None:
    score, lm = smt_bridge.score_table, ["lm=lm.arpa"]
    refused(folder, "--shard reads the table twice", lambda: score("-", "o", lm, shard=(1, 2)))
    refused(folder, "twice and needs an --output", lambda: score("table.gz", "-", lm, resume=True))
    refused(folder, "two sorted tables", lambda: score("table.gz", "o", lm, reuse="old", unsorted=True))
    refused(folder, "executor 'spark' is unknown", lambda: score("table.gz", "o", lm, executor="spark"))


def test_lost_chunks_are_named_and_computed_by_a_resumed_job(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two are lost, then one of them again; in the end the table is that of one run."""
    lines = gzip.decompress((folder / "table.gz").read_bytes()).split(b"\n")[:-1]
    whole = smt_bridge.score_table("table.gz", "whole", ["lm=lm.arpa"])
    cuts = [0]
    for piece in score.cut_chunks(phrase_table.read("table.gz")):
        cuts.append(cuts[-1] + len(piece))
    assert cuts[-1] == len(lines) == whole.pairs and len(cuts) > 4

    def lose(*numbers: int, resume: bool = True) -> None:
        monkeypatch.setitem(EXECUTORS, "lossy", Losing(*numbers))
        smt_bridge.score_table("table.gz", "o", ["lm=lm.arpa"], executor="lossy", resume=resume)

    message = f"table.gz: lines {cuts[1] + 1:,}-{cuts[3]:,}: three workers died while computing this; all"
    with pytest.raises(UserError, match=f"^{message} others are kept in o.job: .* --resume computes these$"):
        lose(1, 2, resume=False)
    assert not (folder / "o").exists() and not (folder / "o.scores.json").exists()
    with pytest.raises(UserError, match=f"lines {cuts[1] + 1:,}-{cuts[2]:,}: three"):
        lose(0)  # the first of the two
    monkeypatch.setattr(ScoringJob, "add", None)  # nothing but the lost chunk is computed
    lose()
    assert (folder / "o").read_bytes() == (folder / "whole").read_bytes()
    assert not (folder / "o.job").exists()


def test_lost_lines_are_those_of_the_table_in_a_shard(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXECUTORS, "lossy", Losing(0))
    smt_bridge.score_table("table.gz", "first", ["lm=lm.arpa"], shard=(1, 2))
    before = (folder / "first").read_bytes().count(b"\n")
    with pytest.raises(UserError, match=rf"table\.gz: lines {before + 1:,}-"):
        smt_bridge.score_table("table.gz", "o", ["lm=lm.arpa"], shard=(2, 2), executor="lossy")


def test_a_stream_ends_at_a_lost_chunk(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setitem(EXECUTORS, "lossy", Losing(1, 3))
    with pytest.raises(UserError, match=r"three workers died .*; nothing is kept of a stream; give files"):
        smt_bridge.score_table("table.gz", "-", ["lm=lm.arpa"], executor="lossy")


class Network(PairFeature):
    """A feature that reads the target side and knows one word."""

    def readers(self) -> dict[str, SideReader]:
        return {"target": SideReader(cut=list, vocabulary={"x"})}

    def score(self, pairs: WordPairs) -> Values:
        return np.zeros(len(pairs))

    def identity(self) -> str:
        return ""


@pytest.mark.ci
def test_report_of_a_language_model(tmp_path: Path) -> None:
    """It reads the target side only: coverage is that side's. Of several networks the first one's."""
    lines = b"a b ||| x y ||| 1 1 1", b"a c ||| x ||| 1 1 1"
    pairs = [phrase_table.parse(line, "t") for line in lines]
    report = TableReport(str(tmp_path / "r"), ["NeuralLM0"], [Network()])
    report.add(pairs, np.zeros((2, 1)))
    report.write()
    rows = dict(line.split("\t") for line in (tmp_path / "r" / "coverage.tsv").read_text().split("\n")[:-1])
    assert rows == {
        "pairs": "2", "pairs with an unknown word": "1", "target words": "3", "unknown target words": "1",
        "target coverage": "0.6667",
    }  # fmt: skip
    assert (tmp_path / "r" / "scatter-NeuralLM0.tsv").exists()
