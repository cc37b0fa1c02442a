"""The messages of a command: to stderr, above a progress bar, and with --log to a file, too."""

import logging
import os
import re
import sys
from contextlib import suppress

from nmt import files, folders
from nmt.cli import streams
from nmt.errors import UserError, one_line

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
            folders.make_parents(path)
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
        streams.say(f"{self.path}: cannot write: {getattr(error, 'strerror', None) or error}")


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
        streams.say(line)
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
