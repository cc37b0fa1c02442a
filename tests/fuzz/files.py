"""A valid file, the one of its folder that is damaged, and its reader."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

Read = Callable[[Path], object]  # of the damaged file


@dataclass
class Reader:
    make: Callable[[Path], object]  # valid files in an empty folder
    file: str
    read: Read
    cases: int = 12  # in the default ring
    named: bool = True  # does a message name the file?


def text(*lines: str) -> Callable[[Path], object]:
    """A folder with one file, `file`."""
    return lambda folder: (folder / "file").write_text(
        "".join(line + "\n" for line in lines), encoding="utf-8"
    )


def drained(found: Iterable[object]) -> int:
    return sum(1 for _ in found)


TABLE = [
    "a b ||| c ||| 0.5 0.25 1 0.1 ||| 0-0 1-0 ||| 3 2 1 ||| |||",
    "a ||| b ||| 0.5 0.25 1 1e-3 ||| 0-0 ||| 3 2 1 ||| |||",
    "a ||| c d ||| 0.5 0.25 1 0.1 ||| 0-0 0-1 ||| 3 2 1 ||| |||",
]
NBEST = [
    "0 ||| a b ||| LM0= -1.5 TM0= -0.5 -0.25 ||| -2.5 ||| 0-0=0-0 1=1",
    "0 ||| a ||| LM0= -1 TM0= -0.5 -0.5 ||| -2.75",
    "1 ||| c ||| LM0= -3 TM0= 0 1e-3 ||| -9",
]
