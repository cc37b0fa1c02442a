"""smt_bridge.score_table, from Python."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

import smt_bridge
from nmt.errors import ConfigError, UserError
from nmt.formats import phrase_table
from nmt.work.executors import EXECUTORS
from smt_bridge.jobs import ScoringJob
from smt_bridge.tables import chunks
from tests.nmt.work.lossy import Losing


@pytest.fixture
def folder(examples: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(examples)
    return examples


def test_progress_counts_up_to_the_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smt_bridge.tables.chunks.CHUNK", 500)
    seen: list[tuple[int, int]] = []
    done = smt_bridge.score_table(
        "table.gz", "o.gz", ["lm=lm.arpa"], progress=lambda pairs, total: seen.append((pairs, total))
    )
    lines = gzip.decompress((folder / "o.gz").read_bytes()).split(b"\n")[:-1]
    assert done.pairs == len(lines) and done.columns == 5
    assert seen[0] == (0, done.pairs) and seen[-1] == (done.pairs, done.pairs) and len(seen) > 3
    assert seen == sorted(seen)


def test_a_resumed_job_starts_where_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smt_bridge.tables.chunks.CHUNK", 500)

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


def test_shards_are_the_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smt_bridge.tables.chunks.CHUNK", 500)
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
    monkeypatch.setattr("smt_bridge.tables.chunks.CHUNK", 500)
    lines = gzip.decompress((folder / "table.gz").read_bytes()).split(b"\n")[:-1]
    whole = smt_bridge.score_table("table.gz", "whole", ["lm=lm.arpa"])
    cuts = [0]
    for piece in chunks.chunks(phrase_table.read("table.gz")):
        cuts.append(cuts[-1] + len(piece))
    assert cuts[-1] == len(lines) == whole.pairs and len(cuts) > 4

    def score(*numbers: int, resume: bool = True) -> None:
        monkeypatch.setitem(EXECUTORS, "lossy", Losing(*numbers))
        smt_bridge.score_table("table.gz", "o", ["lm=lm.arpa"], executor="lossy", resume=resume)

    message = f"table.gz: lines {cuts[1] + 1:,}-{cuts[3]:,}: three workers died while computing them; all"
    with pytest.raises(UserError, match=f"^{message} others are kept in o.job: .* --resume computes these$"):
        score(1, 2, resume=False)
    assert not (folder / "o").exists() and not (folder / "o.scores.json").exists()
    with pytest.raises(UserError, match=f"lines {cuts[1] + 1:,}-{cuts[2]:,}: three"):
        score(0)  # the first of the two
    monkeypatch.setattr(ScoringJob, "add", None)  # nothing but the lost chunk is computed
    score()
    assert (folder / "o").read_bytes() == (folder / "whole").read_bytes()
    assert not (folder / "o.job").exists()


def test_lost_lines_are_those_of_the_table_in_a_shard(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smt_bridge.tables.chunks.CHUNK", 500)
    monkeypatch.setitem(EXECUTORS, "lossy", Losing(0))
    smt_bridge.score_table("table.gz", "first", ["lm=lm.arpa"], shard=(1, 2))
    before = (folder / "first").read_bytes().count(b"\n")
    with pytest.raises(UserError, match=rf"table\.gz: lines {before + 1:,}-"):
        smt_bridge.score_table("table.gz", "o", ["lm=lm.arpa"], shard=(2, 2), executor="lossy")


def test_a_stream_ends_at_a_lost_chunk(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr("smt_bridge.tables.chunks.CHUNK", 500)
    monkeypatch.setitem(EXECUTORS, "lossy", Losing(1, 3))
    with pytest.raises(UserError, match=r"three workers died .*; nothing is kept of a stream; give files"):
        smt_bridge.score_table("table.gz", "-", ["lm=lm.arpa"], executor="lossy")
