"""The standard streams and the messages of a command: UTF-8, above a progress bar, and with --log to a file,
too."""

import logging
import os
import re
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import NoReturn

from nmt.errors import UserError, one_line
from nmt.io import files

# ---- streams -----------------------------------------------------------------------------------------------
# The standard streams of a command: UTF-8 whatever the locale says, and usable even where the shell closed
# them.


def set_up_streams() -> None:
    """Before a command starts. In a locale that is not UTF-8, Python is started anew in its UTF-8 mode."""
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode and sys.executable:
        restart_in_utf8()
    # Opened in the wrong direction, a closed stream fails when it is used, and no file that is opened later
    # gets its number.
    sys.stdin = sys.stdin or placeholder_stream(os.O_WRONLY, "r")
    sys.stdout = sys.stdout or placeholder_stream(os.O_RDONLY, "w")
    sys.stderr = sys.stderr or placeholder_stream(os.O_WRONLY, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # for names that are not UTF-8


def restart_in_utf8() -> NoReturn:
    """Start Python anew so that names, options, texts and the commands we start are all UTF-8; `-X` wins over
    PYTHONUTF8=0."""
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def placeholder_stream(flags: int, mode: str) -> TextIOWrapper:
    """A stream in place of a closed one."""
    number = os.open(os.devnull, flags)  # the lowest free number, which is that of the closed stream
    os.set_inheritable(number, True)
    return TextIOWrapper(open(number, f"{mode}b", closefd=False), encoding="utf-8")


def flush_stdout() -> None:
    """Write what stdout still holds. UserError when that fails."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_stdout()
        raise UserError(f"<stdout>: cannot write: {error.strerror or error}") from error


def drop_stdout() -> None:
    """Do not try again, when Python ends, to write what stdout could not take: that would print a second
    message."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_to_stderr(line: str) -> None:
    """A line to stderr; nobody is left to tell when that fails."""
    with suppress(OSError):
        print(line, file=sys.stderr)


# ---- messages ----------------------------------------------------------------------------------------------


PACKAGES = ("nmt", "smt_bridge")  # their loggers write the messages of a command
MESSAGE = re.compile(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] ")
TIMES = "%Y-%m-%d %H:%M:%S"


class OneLine(logging.Formatter):
    """Whatever a message quotes, it is one line."""

    def format(self, record: logging.LogRecord) -> str:
        return one_line(super().format(record))


class ToTerminal(logging.Handler):
    """Messages above a progress bar, not through it. What a bar shows is no message."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(record, "on_bar", False) and bool(super().filter(record))

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


class LogFile(logging.FileHandler):
    """The file of --log, to which all messages are appended. UserError when it cannot be opened, or holds
    anything but messages: a text that the configuration names, say."""

    def __init__(self, path: str, command: str) -> None:
        try:
            files.make_parents(path)
            if os.path.isfile(path):
                with open(path, "rb") as before:
                    start = before.read(30)
                if start and not MESSAGE.match(start):
                    raise UserError(f"{path}: is no log of ours; name another file")
            super().__init__(path, "a", "utf-8", errors="backslashreplace")
        except OSError as error:
            raise files.cannot_write(path, error) from error
        self.path = path
        self.setLevel(logging.DEBUG)
        self.setFormatter(OneLine(f"[%(asctime)s] {command}: %(message)s", TIMES))

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk, say: nothing more is written, and the work goes on."""
        self.setLevel(logging.CRITICAL + 1)
        error = sys.exc_info()[1]
        print_to_stderr(f"{self.path}: cannot write: {getattr(error, 'strerror', None) or error}")


def start(command: str, quiet: bool, path: str | None, times: bool) -> None:
    """Messages go to stderr, with `quiet` only warnings and errors; all of them, and details such as what was
    measured of the processor, to a file if one is given. UserError when it cannot be written."""
    stop()
    terminal: logging.Handler = ToTerminal() if sys.stderr.isatty() else logging.StreamHandler()
    terminal.setFormatter(OneLine("[%(asctime)s] %(message)s" if times else f"{command}: %(message)s", TIMES))
    terminal.setLevel(logging.WARNING if quiet else logging.INFO)
    handlers = [terminal, LogFile(path, command)] if path else [terminal]
    for package in PACKAGES:
        root = logging.getLogger(package)
        root.handlers = list(handlers)
        root.propagate = False
        root.setLevel(min(handler.level for handler in handlers))


def log_file() -> LogFile | None:
    """The file of --log, if there is one."""
    handlers = logging.getLogger(PACKAGES[0]).handlers
    return next((handler for handler in handlers if isinstance(handler, LogFile)), None)


def say(line: str) -> None:
    """A line to stderr, above a progress bar if there is one."""
    if "tqdm" not in sys.modules or not sys.stderr.isatty():
        print_to_stderr(line)
        return
    from tqdm import tqdm

    with suppress(OSError):
        tqdm.write(line, file=sys.stderr)


def error(command: str, message: str) -> None:
    """The line that a command ends with: to stderr, and to the file."""
    say(f"{command}: {message}")
    if found := log_file():
        found.handle(logging.makeLogRecord({"msg": message, "levelno": logging.ERROR}))


def stop() -> None:
    """Close the file."""
    if found := log_file():
        with suppress(OSError):
            found.close()
        for package in PACKAGES:
            root = logging.getLogger(package)
            root.handlers = [handler for handler in root.handlers if handler is not found]
