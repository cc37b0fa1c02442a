"""How fast a machine is."""

import time

import pytest

from smt_bridge.build import rates


@pytest.mark.parametrize(("share", "grade"), [(0.93, 1.0), (1.1, 1.0), (0.01, 0.25), (1.9, 2.0), (50, 4.0)])
def test_speeds_are_coarse_so_that_two_measurements_agree(share: float, grade: float) -> None:
    assert rates.graded(share * rates.REFERENCE) == grade


def test_a_measurement_counts_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that ticks once a product, a second has ten products."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(time, "process_time", lambda: next(ticks) / 10)
    monkeypatch.setattr(rates, "SECONDS", 1.0)
    rows, inner, columns = rates.SHAPE
    assert rates.measured() == pytest.approx(2 * rows * inner * columns * 9, rel=0.2)
