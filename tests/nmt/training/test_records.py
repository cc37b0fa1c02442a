"""What training writes about itself."""

import logging
from pathlib import Path

import pytest

from nmt.training import records


def test_the_rate_after_a_resume_leaves_out_earlier_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """900 of 1,000 words since the last line were read by an earlier start: 100 in 10 seconds; then 500 in
    5."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    clock = records.Clock(before=40.0, words=900)
    now[0] = 110.0
    assert clock.rate(1000) == 10 and clock.seconds() == 50
    now[0] = 115.0
    assert clock.rate(500) == 100


def test_the_pace_is_that_of_the_last_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validations are left out; a slow start is forgotten."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    clock = records.Clock(before=40.0)
    for seconds in (3.0, 1.0):
        now[0] += seconds
        clock.tick()
    assert clock.pace == 2.0
    now[0] += 50
    clock.leave_out(50)
    now[0] += 2
    clock.tick()
    assert clock.pace == 2.0
    for _ in range(10 * records.RECENT):
        now[0] += 1
        clock.tick()
    assert clock.pace == pytest.approx(1.0, abs=0.01)


def test_a_log_that_is_shorter_than_it_was_is_not_filled_with_zeros(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("nmt").propagate = True
    (tmp_path / "train.tsv").write_text("step\n1\n2\n")
    records.LogTable(tmp_path / "train.tsv", ["step"], 7).file.close()
    assert (tmp_path / "train.tsv").read_text() == "step\n1\n" and not caplog.records
    records.LogTable(tmp_path / "train.tsv", ["step"], 99).file.close()
    assert (
        tmp_path / "train.tsv"
    ).read_text() == "step\n1\n" and "7 bytes, but 99 when it was saved" in caplog.text
    (tmp_path / "train.tsv").unlink()
    records.LogTable(tmp_path / "train.tsv", ["step"], 99).file.close()
    assert (tmp_path / "train.tsv").read_text() == "step\n"
