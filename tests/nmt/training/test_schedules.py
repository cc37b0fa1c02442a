"""The learning rate after the warm-up."""

from nmt.training.schedules import scheduled


def test_schedules_by_hand() -> None:
    assert [scheduled("constant", 0, step) for step in (1, 100)] == [1.0, 1.0]
    assert [scheduled("constant", 4, step) for step in (1, 2, 4, 9)] == [0.25, 0.5, 1.0, 1.0]
    assert [scheduled("inverse_sqrt", 4, step) for step in (1, 4, 16, 64)] == [0.25, 1.0, 0.5, 0.25]
    assert [scheduled("linear", 2, step, 5) for step in (1, 2, 3, 5, 6)] == [0.5, 1.0, 0.75, 0.25, 0.0]
    assert [scheduled("linear", 2, step, used=0.25) for step in (1, 2, 9)] == [0.5, 0.75, 0.75]  # time alone
    assert [scheduled("linear", 0, 5, 9, used) for used in (0.25, 0.75)] == [0.5, 0.25]  # the nearer end
    assert [scheduled(name, 1, 1, used=0.5) for name in ("constant", "inverse_sqrt")] == [1.0, 1.0]
    assert [scheduled("linear", 9, step, 5) for step in (3, 9, 10)] == [1 / 3, 0.0, 0.0]  # a long warm-up
