"""What a user can cause. Everything here ends as one line on stderr and exit status 2.

UserError
├── ConfigError       a wrong key, type or value in a configuration, or options that exclude each other
├── DataError         text that cannot be used: encoding, line counts, a malformed file
└── CheckpointError   a run directory that is missing, truncated, foreign or of another version
"""

import re

LONGEST = 1500  # characters of a message; a file may have tokens of megabytes
WIDEST = 400  # of a word in it: a path keeps both ends


class UserError(Exception):
    """The message says: `file:line: what is wrong, what was expected, what to do`."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class ConfigError(UserError):
    pass


class DataError(UserError):
    pass


class CheckpointError(UserError):
    pass


def one_line(message: str) -> str:
    """A message as one line that a terminal can show: cut where it is too long, control characters
    escaped."""
    line = re.sub(r"[^\S ]+", " ", message).strip()
    line = (
        line
        if line.isprintable()
        else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line[: 4 * LONGEST])
    )
    line = re.sub(
        rf"\S{{{WIDEST + 1},}}", lambda word: f"{word[0][: WIDEST // 2]}...{word[0][-WIDEST // 2 :]}", line
    )
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
