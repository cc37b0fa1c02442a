"""The standard streams of a command, and its messages, which go to stderr, above the progress bar, and with
--log to a file, too."""

import logging
import os
import re
import sys
from contextlib import suppress
from io import TextIOWrapper

from nmt.errors import UserError, one_line
from nmt.io import files

# ---- streams -----------------------------------------------------------------------------------------------


def set_up_streams() -> None:
    """Make the standard streams UTF-8, and replace those that the shell has closed. If the locale is not
    UTF-8, restart Python in UTF-8 mode."""
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode and sys.executable:
        # So that file names, options, texts and subprocesses are all UTF-8; `-X` wins over PYTHONUTF8=0.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    # A placeholder is opened in the wrong direction, so that using it fails. It occupies the descriptor of
    # the closed stream, so that no file opened later gets it.
    sys.stdin = sys.stdin or placeholder_stream(os.O_WRONLY, "r")
    sys.stdout = sys.stdout or placeholder_stream(os.O_RDONLY, "w")
    sys.stderr = sys.stderr or placeholder_stream(os.O_WRONLY, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # file names may not be UTF-8


def placeholder_stream(flags: int, mode: str) -> TextIOWrapper:
    """Open a stream with the file descriptor of a closed one."""
    number = os.open(os.devnull, flags)  # the lowest free descriptor, which is that of the closed stream
    os.set_inheritable(number, True)
    return TextIOWrapper(open(number, f"{mode}b", closefd=False), encoding="utf-8")


def flush_stdout() -> None:
    """Flush stdout. UserError if that fails."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_stdout()
        raise UserError(f"<stdout>: cannot write: {error.strerror or error}") from error


def drop_stdout() -> None:
    """Discard what stdout could not write; Python would try again at exit and print a second message."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_to_stderr(line: str) -> None:
    """Print a line to stderr, ignoring an OSError."""
    with suppress(OSError):
        print(line, file=sys.stderr)


# ---- messages ----------------------------------------------------------------------------------------------


PACKAGES = ("nmt", "smt_bridge")  # packages whose log messages a command shows
MESSAGE = re.compile(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] ")
TIMES = "%Y-%m-%d %H:%M:%S"


class OneLine(logging.Formatter):
    """Formats each message as one line, even if it quotes text with line breaks."""

    def format(self, record: logging.LogRecord) -> str:
        return one_line(super().format(record))


class ToTerminal(logging.Handler):
    """Prints messages above the progress bar, except those that the bar shows itself."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(record, "on_bar", False) and bool(super().filter(record))

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


class LogFile(logging.FileHandler):
    """The file of --log, to which all messages are appended. UserError if it cannot be opened, or exists but
    is not a log, for instance a text that was named by mistake."""

    def __init__(self, path: str, command: str) -> None:
        with files.naming_unwritten(path):
            files.make_parents(path)
            if os.path.isfile(path):
                with open(path, "rb") as stream:
                    start = stream.read(30)
                if start and not MESSAGE.match(start):
                    raise UserError(f"{path}: exists and is not a log of this program; name another file")
            super().__init__(path, "a", "utf-8", errors="backslashreplace")
        self.path = path
        self.setLevel(logging.DEBUG)
        self.setFormatter(OneLine(f"[%(asctime)s] {command}: %(message)s", TIMES))

    def handleError(self, record: logging.LogRecord) -> None:
        """Stop writing to the file, for instance on a full disk; the command goes on."""
        self.setLevel(logging.CRITICAL + 1)
        error = sys.exc_info()[1]
        print_to_stderr(f"{self.path}: cannot write: {getattr(error, 'strerror', None) or error}")


def start(command: str, quiet: bool, path: str | None, times: bool) -> None:
    """Send messages to stderr (with `quiet` only warnings and errors) and, with more detail, to the file
    `path` if given. `times`: begin lines on stderr with the time instead of the command's name. UserError if
    the file cannot be written."""
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
    """Print a line to stderr, above the progress bar if there is one."""
    if "tqdm" not in sys.modules or not sys.stderr.isatty():
        print_to_stderr(line)
        return
    from tqdm import tqdm

    with suppress(OSError):
        tqdm.write(line, file=sys.stderr)


def error(command: str, message: str) -> None:
    """Report the error that ends a command, on stderr and in the log file."""
    say(f"{command}: {message}")
    if log := log_file():
        log.handle(logging.makeLogRecord({"msg": message, "levelno": logging.ERROR}))


def stop() -> None:
    """Close the log file, if there is one."""
    if log := log_file():
        with suppress(OSError):
            log.close()
        for package in PACKAGES:
            root = logging.getLogger(package)
            root.handlers = [handler for handler in root.handlers if handler is not log]
