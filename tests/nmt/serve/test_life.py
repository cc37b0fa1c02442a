"""When the server ends."""

from nmt.serve.life import Life


def test_it_ends_when_the_last_request_has_been_answered() -> None:
    life = Life(active=1)
    assert not life.is_over(60)
    life.stop()
    assert not life.is_over(60)
    life.active = 0
    assert life.is_over(60)


def test_it_ends_when_time_is_up() -> None:
    life = Life(active=1)
    life.stop()
    since = life.stopping
    life.stop()
    assert life.stopping == since and life.is_over(-1)
