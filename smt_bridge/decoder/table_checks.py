"""The checks of `smt-ini check` on a table that is being loaded: of all rows at once, line by line only where
something is wrong.

Looking at every line the way nmt.formats.phrase_table does takes longer than loading the table, so
`sound` asks the same of distinct phrases and alignments first.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from nmt import files
from nmt.errors import DataError
from nmt.formats import phrase_table
from nmt.formats.phrase_table import PhrasePair

Ints = NDArray[np.int64]
SPACE, LINE_END = b" \n"
SCORE_BYTES = b"0123456789.eE+- \t"


def check_line(line: bytes, where: str) -> PhrasePair:
    """DataError for a line that Moses refuses or misreads, and for sparse features, which the embedded engine
    does not have."""
    pair = phrase_table.parse(line, where)
    phrase_table.check(pair, where)
    fields = pair.fields()
    if len(fields) > 5 and fields[5]:
        name = fields[5].split()[0][:60].decode("utf-8", "replace")
        raise DataError(
            f"{where}: sparse feature {name!r}, which the embedded engine does not have; empty the sixth "
            "field of the table, or decode with Moses"
        )
    return pair


def check_lines(path: str, columns: int) -> None:
    """Read a table line by line. DataError for the first thing that is wrong."""
    number = 0
    for number, line in enumerate(files.read_byte_lines(path), 1):
        where = f"{path}:{number}"
        count = len(check_line(line, where).scores.split())
        if count != columns:
            raise DataError(
                f"{where}: {count} scores, but the ini says num-features={columns}; give the table that "
                "belongs to the ini"
            )
    if not number:
        raise DataError(f"{path}: empty file, expected a phrase table")


def sound_phrases(phrases: Iterable[bytes]) -> Ints | None:
    """The number of words in each phrase, if all are UTF-8 without the signs that mean something else to
    Moses: factors, non-terminals.

    None for others, and for what is seldom enough to be looked at line by line: tabs, several spaces, none
    between brackets.
    """
    text = b"\n".join(phrases)
    if not text.isascii():
        try:
            text.decode("utf-8")
        except UnicodeDecodeError:
            return None
    if (
        any(sign in text for sign in (b"|", b"\0", b"\t", b"  ", b"\n\n", b"\xef\xbb\xbf"))
        or text.startswith(b"\n")
        or text.endswith(b"\n")
    ):
        return None
    if b"[" in text and any(word[:1] == b"[" and word[-1:] == b"]" for word in text.split()):
        return None
    signs = np.frombuffer(text, np.uint8)
    gaps = np.flatnonzero((signs == SPACE) | (signs == LINE_END))
    ends = np.append(np.flatnonzero(signs[gaps] == LINE_END), len(gaps))
    return np.diff(ends, prepend=-1)


def sound_scores(texts: Sequence[bytes]) -> bool:
    """Nothing but numbers as Moses writes them: neither words nor `inf`."""
    return not b"".join(texts).translate(None, SCORE_BYTES)


def sound_alignments(alignments: Iterable[bytes]) -> Ints | None:
    """Distinct alignments: how many source and target words the points of each ask for, (A, 2); None if one
    is not of the form 0-0 1-1."""
    asked = []
    for alignment in alignments:
        if not phrase_table.ALIGNMENT.fullmatch(alignment):
            return None
        numbers = alignment.replace(b"-", b" ").split()
        asked.append(
            (1 + max(map(int, numbers[::2])), 1 + max(map(int, numbers[1::2]))) if numbers else (0, 0)
        )
    return np.array(asked, np.int64).reshape(-1, 2)
