"""What training writes about itself."""

import pytest

from nmt.training import records


def test_the_rate_after_a_resume_leaves_out_earlier_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """900 of 1,000 words since the last line were read by an earlier start: 100 in 10 seconds; then 500 in 5."""
    now = [100.0]
    monkeypatch.setattr(records.time, "monotonic", lambda: now[0])
    clock = records.Clock(before=40.0, words=900)
    now[0] = 110.0
    assert clock.rate(1000) == 10 and clock.seconds() == 50
    now[0] = 115.0
    assert clock.rate(500) == 100
