"""How hypothesis draws cases, valid files with their readers, and what can happen to a file on its way."""

import gzip
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

# ---- cases -------------------------------------------------------------------------------------------------
# How hypothesis makes cases: the same ones each time, and nothing that it keeps.


def options(cases: int) -> settings:
    """For so many cases of a test."""
    return settings(
        max_examples=cases,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )


# ---- files -------------------------------------------------------------------------------------------------
# A valid file, the one of its folder that is damaged, and its reader.


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


# ---- mutations ---------------------------------------------------------------------------------------------
# Cut, flipped, shuffled, typed into: valid bytes in, mutated bytes out.


Draw = Callable[[st.SearchStrategy[int]], int]

# fmt: off
NASTY = [
    b"", b" ", b"\0", b"\r", b"\n", b"\t", b"\xff", b"\xc3", "\u2028".encode(), "²".encode(), b"-1", b"nan",
    b"-inf", b"1e999", b"1e-999", b"9" * 25,
    b"9" * 5000,
    b"1_0", b"0x10", b"+1", b"99999999", b"-0", b"x" * 5000, "é".encode() * 3000, b"|||", b" ||| ", b"<s>",
    b"</s>", b"<unk>", b"@@", b"[1]", b"[" * 3000,
    b"{" * 3000, b"${a}", b"${oc.env:HOME}", b"&a", b"*a", b"!!python/object:os.system", b"\x1b[2J", b"%s",
    b"\xef\xbb\xbf", b"\\", b'"', b"'", b"null",
    b"true",
]
# fmt: on


def place(draw: Draw, data: bytes, extra: int = 0) -> int:
    return draw(st.integers(0, max(0, len(data) - 1 + extra)))


def cut(draw: Draw, data: bytes) -> bytes:
    return data[: place(draw, data, 1)]


def behead(draw: Draw, data: bytes) -> bytes:
    return data[place(draw, data, 1) :]


def hole(draw: Draw, data: bytes) -> bytes:
    begin = place(draw, data, 1)
    return data[:begin] + data[begin + draw(st.integers(1, 20)) :]


def flip(draw: Draw, data: bytes) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    changed[place(draw, data)] ^= 1 << draw(st.integers(0, 7))
    return bytes(changed)


def insert(draw: Draw, data: bytes) -> bytes:
    at = place(draw, data, 1)
    return data[:at] + NASTY[draw(st.integers(0, len(NASTY) - 1))] + data[at:]


def word(draw: Draw, data: bytes) -> bytes:
    """Another word, or number, in the place of one."""
    found = list(re.finditer(rb"[^\s,:{}\[\]=|]+", data[:200_000]))
    if not found:
        return insert(draw, data)
    chosen = found[draw(st.integers(0, len(found) - 1))]
    return data[: chosen.start()] + NASTY[draw(st.integers(0, len(NASTY) - 1))] + data[chosen.end() :]


def number(draw: Draw, data: bytes) -> bytes:
    found = list(re.finditer(rb"-?[0-9][0-9.e+-]*", data[:200_000]))
    if not found:
        return insert(draw, data)
    chosen = found[draw(st.integers(0, len(found) - 1))]
    return data[: chosen.start()] + NASTY[draw(st.integers(9, 23))] + data[chosen.end() :]


def lines(draw: Draw, data: bytes) -> bytes:
    """A line goes, comes twice, or changes its place with another."""
    rows = data.split(b"\n")
    first, second = (draw(st.integers(0, len(rows) - 1)) for _ in range(2))
    kind = draw(st.integers(0, 2))
    if kind == 0:
        del rows[first]
    elif kind == 1:
        rows.insert(second, rows[first])
    else:
        rows[first], rows[second] = rows[second], rows[first]
    return b"\n".join(rows)


def fields(draw: Draw, data: bytes) -> bytes:
    """The same with what stands between blanks, tabs or ||| of one line."""
    rows = data.split(b"\n")
    at = draw(st.integers(0, len(rows) - 1))
    mark = (b" ", b"\t", b" ||| ")[draw(st.integers(0, 2))]
    rows[at] = mark.join(lines(draw, b"\n".join(rows[at].split(mark))).split(b"\n"))
    return b"\n".join(rows)


def repeat(draw: Draw, data: bytes) -> bytes:
    """A piece many times: very long words and lines, deep nesting."""
    begin = place(draw, data)
    piece = data[begin : begin + draw(st.integers(1, 10))]
    return data[:begin] + piece * draw(st.integers(2, 3000)) + data[begin:]


def pack(draw: Draw, data: bytes) -> bytes:
    """As a gzip file, which may be cut."""
    packed = gzip.compress(data, 1, mtime=0)
    return cut(draw, packed) if draw(st.integers(0, 1)) else packed


MUTATIONS = [cut, behead, hole, flip, insert, word, number, lines, fields, repeat, pack]


@st.composite
def mutated(draw: Draw, valid: bytes) -> bytes:
    data = valid
    for _ in range(draw(st.integers(1, 3))):
        data = MUTATIONS[draw(st.integers(0, len(MUTATIONS) - 1))](draw, data)
    return data
