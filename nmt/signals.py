"""SIGTERM and Ctrl-C: the first one lets a command clean up or save, the second one ends it at once.

Files are written beside their names, so neither leaves half of one under its name.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

# seconds to clean up in; a library may have swallowed the exception, or compute on, and then the kernel ends
# the process
GRACE = 10.0
SAME = 0.5  # seconds: `timeout` and torchrun send a signal twice, to a process and to its group; that is one


class Held:
    """`with held:` in the main thread: a signal is noted, and what it leads to happens at the end of the
    block.

    Compiled code needs this: an exception out of a signal handler, raised while its arguments are unpacked,
    is a segmentation fault.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.late: Callable[[], object] | None = None

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1
        if self.late is not None and not self.depth:
            late, self.late = self.late, None
            late()


held = Held()


def listen(first: Callable[[int], object]) -> None:
    """Call `first` with the number of the first signal. One that this process was told to ignore (nohup, say)
    stays ignored."""
    came: list[float] = []

    def handle(number: int, frame: object) -> None:
        came.append(time.monotonic())
        if len(came) > 1:
            if came[-1] - came[0] > SAME:
                end(number)
        elif held.depth:
            held.late = lambda: first(number)
        else:
            first(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handle)


def leave(number: int) -> NoReturn:
    """Files that are being written beside their names are removed on the way out."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, GRACE)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def end(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
