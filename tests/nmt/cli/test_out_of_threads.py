import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from nmt.cli import options


def test_a_machine_out_of_threads_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def command(argv: Sequence[str] | None) -> None:
        with ThreadPoolExecutor(2) as crew:
            crew.submit(print)

    monkeypatch.setattr(threading.Thread, "start", start)
    assert options.run(command, []) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "the system starts no more threads" in message
