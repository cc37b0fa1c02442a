"""Run a command in this process that is expected to refuse its arguments."""

from collections.abc import Callable, Sequence

import pytest

Main = Callable[[Sequence[str] | None], int]


def refusal(main: Main, capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """Return the one line of a command that ends with exit status 2."""
    capsys.readouterr()
    try:
        status = main([str(word) for word in words])
    except SystemExit as stop:
        assert isinstance(stop.code, int)
        status = stop.code
    message = capsys.readouterr().err
    assert status == 2 and message.count("\n") == 1 and "Traceback" not in message, message
    return message
