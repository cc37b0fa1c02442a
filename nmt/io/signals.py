"""SIGTERM and Ctrl-C: the first lets a command clean up or save, the second ends it at once.

Files are written under temporary names and renamed, so neither leaves half a file behind.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

# Seconds for cleaning up. A library may swallow the exception, or go on computing; then the kernel ends the
# process.
GRACE = 10.0
# Seconds within which two signals count as one: `timeout` and torchrun send a signal twice, to a process and
# to its group.
SAME = 0.5


class DelayedSignals:
    """`with delayed:` in the main thread postpones what the handler of `listen` does at the first signal to
    the end of the outermost block. A second signal ends the process at once, and other handlers are not
    delayed.

    Compiled code needs this: an exception from a signal handler while its arguments are unpacked causes a
    segmentation fault.
    """

    def __init__(self) -> None:
        self.depth = 0  # of nested blocks; the handler tests it
        self.late: Callable[[], object] | None = None  # the postponed call, which the handler stores here

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
        if self.late is not None and not self.depth:
            late, self.late = self.late, None
            late()


delayed = DelayedSignals()


def listen(first: Callable[[int], object]) -> None:
    """Call `first` with the number of the first SIGTERM or SIGINT; a second one ends the process at once.
    Signals that this process was started to ignore (by nohup, say) stay ignored. Only in the main thread."""
    came: list[float] = []

    def handle(number: int, frame: object) -> None:
        came.append(time.monotonic())
        if len(came) > 1:
            if came[-1] - came[0] > SAME:
                end(number)
        elif delayed.depth:
            delayed.late = lambda: first(number)
        else:
            first(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handle)


@contextmanager
def at_once() -> Iterator[None]:
    """Context in which a signal that `listen` handles ends the process at once: for calls of compiled code
    that take minutes, since a Python handler would run only after the call. No file may be half-written in
    the block. Has no effect outside the main thread."""
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            if getattr(signal.getsignal(number), "__module__", "") == __name__:
                handlers[number] = signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


class Stop:
    """The `stop` callback of training: true after SIGTERM or SIGINT, so that training finishes the current
    update and saves. A second signal ends the process at once."""

    def __init__(self) -> None:
        self.number = 0  # of the signal; 0: none yet
        listen(self.note)

    def note(self, number: int) -> None:
        self.number = number

    def __call__(self) -> bool:
        return self.number != 0


def leave(number: int) -> NoReturn:
    """End the process by an exception (KeyboardInterrupt or SystemExit), so that unfinished files are
    removed; after GRACE seconds the kernel ends it."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, GRACE)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def end(number: int) -> None:
    """End the process at once, by the default action of signal `number`."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
