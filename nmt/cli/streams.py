"""The standard streams of a command: UTF-8 whatever the locale says, and usable even where the shell closed
them."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import NoReturn

from nmt.errors import UserError


def set_up() -> None:
    """Before a command starts. In a locale that is not UTF-8, Python is started anew in its UTF-8 mode."""
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode and sys.executable:
        restart()
    # Opened in the wrong direction, a closed stream fails when it is used, and no file that is opened later
    # gets its number.
    sys.stdin = sys.stdin or placeholder(os.O_WRONLY, "r")
    sys.stdout = sys.stdout or placeholder(os.O_RDONLY, "w")
    sys.stderr = sys.stderr or placeholder(os.O_WRONLY, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # for names that are not UTF-8


def restart() -> NoReturn:
    """Start Python anew so that names, options, texts and the commands we start are all UTF-8; `-X` wins over
    PYTHONUTF8=0."""
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def placeholder(flags: int, mode: str) -> TextIOWrapper:
    """A stream in place of a closed one."""
    number = os.open(os.devnull, flags)  # the lowest free number, which is that of the closed stream
    os.set_inheritable(number, True)
    return TextIOWrapper(open(number, f"{mode}b", closefd=False), encoding="utf-8")


def flush() -> None:
    """Write what stdout still holds. UserError when that fails."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop()
        raise UserError(f"<stdout>: cannot write: {error.strerror or error}") from error


def drop() -> None:
    """Do not try again, when Python ends, to write what stdout could not take: that would print a second
    message."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(line: str) -> None:
    """A line to stderr; nobody is left to tell when that fails."""
    with suppress(OSError):
        print(line, file=sys.stderr)
