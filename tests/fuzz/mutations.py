"""What can happen to a file on its way: cut, flipped, shuffled, typed into. Valid bytes in, mutated bytes
out."""

import gzip
import re
from collections.abc import Callable

from hypothesis import strategies as st

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
