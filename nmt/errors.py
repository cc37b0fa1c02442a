"""Errors that a user can cause; commands turn them into one line on stderr and exit status 2.

UserError
├── ConfigError
├── DataError
└── CheckpointError

Wrong types from Python programs are a TypeError.
"""

import re

LONGEST = 1500  # characters of a message; a file may have tokens of megabytes
WIDEST = 400  # characters of a word in it; of a longer one, such as a path, both ends are kept


class UserError(Exception):
    """An error that the user can cause and mend. The message reads: `file:line: what is wrong, what was
    expected, what to do`."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class ConfigError(UserError):
    """A wrong key, type or value in a configuration, or options that exclude each other."""


class DataError(UserError):
    """A file or text that cannot be used: missing, not UTF-8, malformed, of a wrong number of lines."""


class CheckpointError(UserError):
    """A run directory that is missing, truncated, foreign or of another version, or a checkpoint that cannot
    be written."""


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error is an out-of-memory error; torch has no class for it on the CPU, nor do CUDA's
    libraries."""
    message = str(error)
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError)
        and any(part in message for part in ("allocate memory", "out of memory", "ALLOC_FAILED"))
    )


def one_line(message: str) -> str:
    """Format a message as one line that is safe for a terminal: control characters are escaped, the middle of
    long words and the end of a long message are cut."""
    line = re.sub(r"[^\S ]+", " ", message).strip()
    if not line.isprintable():
        line = "".join(
            character if character.isprintable() else ascii(character)[1:-1]
            for character in line[: 4 * LONGEST]
        )
    line = re.sub(
        rf"\S{{{WIDEST + 1},}}", lambda word: f"{word[0][: WIDEST // 2]}...{word[0][-WIDEST // 2 :]}", line
    )
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


# ---- lines that a Python program passes --------------------------------------------------------------------
# A str where a list of lines is expected would be read as a list of its characters.


def has_str(values: object) -> bool:
    """Whether values that should be pairs or lists of lines are a str, or a list with one."""
    listed = isinstance(values, tuple | list) and any(isinstance(value, str) for value in values)
    return listed or isinstance(values, str)


def check_lines(lines: object, what: str = "lines") -> None:
    """TypeError for a str where a list of lines is expected."""
    if isinstance(lines, str):
        raise TypeError(f"expected a list of {what}, found a str; write [text] for one")


def check_pairs(pairs: object) -> None:
    """TypeError for a str, or one pair of them, where a list of pairs is expected, and for a pair that is
    not two texts."""
    if has_str(pairs):
        raise TypeError("expected a list of pairs, found a str; write [(source, target)] for one")
    if isinstance(pairs, tuple | list) and (wrong := [len(pair) for pair in pairs if len(pair) != 2]):
        raise TypeError(f"expected pairs (source, target), found a tuple of {wrong[0]}")


def check_texts(texts: object, what: str) -> None:
    """TypeError for a str, or a list of them, where a list of texts is expected, each a list of lines."""
    if has_str(texts):
        raise TypeError(
            f"expected a list of {what}, each a list of lines, found a str; write [lines] for one"
        )
