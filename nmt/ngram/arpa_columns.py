"""Text of ARPA files by column: many numbers or words are formatted and parsed at a time, in arrays of bytes.

R rows (lines of a file), P pieces of text. A position is an index of the bytes of a PaddedText, its padding
included.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words64 = NDArray[np.uint64]

POWERS = 10.0 ** np.arange(17)

# ---- formatting --------------------------------------------------------------------------------------------

NUMBER_BYTES = 20  # of a number and what follows it, as -1.2345678e-100, at most
STEPS = 10.0 ** np.arange(-4, 2)  # numbers between two of these have the same `decimals`
# Texts of four bytes, each as one number: 0000 to 9999, and the whole parts ` -0.` to `-99.`
FOUR_DIGITS = np.frombuffer(b"".join(b"%04d" % n for n in range(10_000)), np.uint32)
WHOLE_PARTS = np.frombuffer(b"".join(b"%3d." % -n if n else b" -0." for n in range(100)), np.uint32)
ZEROS = np.array([4 - len(f"{n:04d}".rstrip("0")) for n in range(10_000)])  # at the end of 0000 to 9999


class EightDigits(NamedTuple):
    """Absolute values of numbers, rounded to eight significant digits: `rounded` / 10^`decimals`."""

    rounded: Floats  # whole numbers
    decimals: Ints
    usual: NDArray[np.bool_]  # False: too small, large or close to a half; C's printf rounds it

    @classmethod
    def of(cls, values: Floats) -> "EightDigits":
        size = np.abs(values)
        usual = (size >= 1e-4) & (size < 99.9) | (size == 0)
        size = np.where(usual, size, 1.0)
        decimals = 12 - np.searchsorted(STEPS, size, "right")
        scaled = size * POWERS[decimals]
        rounded = np.rint(scaled)
        # The product is exact to 1e-8.
        usual &= (np.abs(scaled - np.floor(scaled) - 0.5) > 1e-6) & (rounded < 1e8)
        return cls(rounded, decimals, usual)


def round_numbers(values: Floats) -> Floats:
    """Round numbers to the eight significant digits that ARPA files have, as `format_numbers` and float() do:
    (R,) -> (R,)"""
    digits = EightDigits.of(values)
    rounded = np.copysign(digits.rounded / POWERS[digits.decimals], values)  # one rounding, as float() does
    for row in np.flatnonzero(~digits.usual):
        rounded[row] = float(f"{values[row]:.8g}")
    return rounded


def format_numbers(values: Floats, end: str) -> tuple[Bytes, Ints, Ints]:
    """Format numbers as `%.8g`, each followed by `end`, an ASCII character: (R,) -> (R, NUMBER_BYTES), each
    row a text; the index at which it begins, (R,), and its length, `end` included, (R,)."""
    rounded, decimals, usual = EightDigits.of(values)
    whole, fraction = np.divmod(rounded.astype(np.int64) * POWERS[12 - decimals].astype(np.int64), 10**12)
    high, low = np.divmod(fraction, 10**8)
    middle, low = np.divmod(low, 10**4)
    parts = np.empty((len(values), NUMBER_BYTES // 4), np.uint32)
    for column, part in enumerate((high, middle, low), 1):
        parts[:, column] = FOUR_DIGITS[part]
    parts[:, 0] = WHOLE_PARTS[whole]
    digits = np.where(low > 0, 12 - ZEROS[low], np.where(middle > 0, 8 - ZEROS[middle], 4 - ZEROS[high]))
    stops = np.where(fraction > 0, 4 + digits, 3)
    begins = (whole < 10).astype(np.int64) + ~np.signbit(values)
    texts = parts.view(np.uint8)
    for row in np.flatnonzero(~usual):
        text = np.frombuffer(b"%.8g" % values[row], np.uint8)
        texts[row, : len(text)], begins[row], stops[row] = text, 0, len(text)
    texts[np.arange(len(values)), stops] = ord(end)
    return texts, begins, stops + 1 - begins


def join_pieces(pool: Bytes, starts: Ints, lengths: Ints) -> bytes:
    """Join pieces of a text, given by their starts and lengths in `pool`, (P,) each."""
    ends = np.cumsum(lengths)
    index = np.repeat(starts - (ends - lengths), lengths)
    index += np.arange(len(index))
    return pool.take(index).tobytes()


# ---- parsing -----------------------------------------------------------------------------------------------
# Eight bytes of a text are loaded as one number, at any position.

PADDING = b"x" * 16  # before and after a text, so that loads stay inside
TAB, LINE_END, BLANK = 9, 10, 32
LONGEST = 64  # bytes of a word that is looked up here
MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio
FIRST_BYTES = np.array([(1 << 8 * k) - 1 for k in range(9)], np.uint64)  # the first k bytes of eight
LAST_BYTES = np.array([(1 << 64) - (1 << 8 * (8 - k)) for k in range(9)], np.uint64)
POINT = ord(".") - ord("0") & 0xFF  # a point among digits
ALL_ZEROS = np.uint64(0x3030303030303030)  # eight digits 0
# Joins pairs of neighboring numbers of 8, 16 and 32 bits: factor, shift, mask
JOINS = [
    (np.uint64(base << bits | 1), np.uint64(bits), np.uint64(mask))
    for base, bits, mask in (
        (10, 8, 0x00FF00FF00FF00FF),
        (100, 16, 0x0000FFFF0000FFFF),
        (10_000, 32, 0xFFFFFFFF),
    )
]
EXACT = 2**53  # integers below are exact in a double


class PaddedText(NamedTuple):
    """A text with padding at both ends: B bytes, each alone and as the first of eight read as one number."""

    characters: Bytes  # (B,)
    eights: Words64  # (B - 7,) bytes i to i + 7, little-endian

    @classmethod
    def of(cls, text: bytes) -> "PaddedText":
        padded = PADDING + text + PADDING
        eights: Words64 = np.ndarray(len(padded) - 7, "<u8", padded, strides=(1,))
        return cls(np.frombuffer(padded, np.uint8), eights)


def parse_numbers(text: PaddedText, starts: Ints, ends: Ints) -> Floats | None:
    """Parse the numbers between the positions `starts` and `ends`, (R,) each -> (R,); values equal those of
    float(). None if one is not a number."""
    negative = text.characters[starts] == ord("-")
    lengths = ends - starts - negative
    short = np.clip(lengths, 0, 16)
    last, first = LAST_BYTES[np.minimum(short, 8)], LAST_BYTES[np.maximum(short - 8, 0)]
    eights = np.empty((len(starts), 2), np.uint64)
    eights[:, 0] = text.eights[ends - 16] & first | ALL_ZEROS & ~first
    eights[:, 1] = text.eights[ends - 8] & last | ALL_ZEROS & ~last
    digits = eights.view(np.uint8) - ord("0")
    is_point = digits == POINT
    digits[is_point] = 0
    points, wrong = is_point.view(np.uint64), (digits > 9).view(np.uint64)
    single = points & points - 1 == 0  # at most one in each half
    single = single[:, 0] & single[:, 1] & ((points[:, 0] == 0) | (points[:, 1] == 0))
    has_point = points[:, 0] | points[:, 1] != 0
    point = np.frexp(points.astype(np.float64))[1] - 1 >> 3  # a point in byte k is bit 8k
    decimals = np.where(points[:, 1] > 0, 7 - point[:, 1], np.where(points[:, 0] > 0, 15 - point[:, 0], 0))
    halves = digits.view(np.uint64)  # eight digits each: pairs of them, fours, all
    for factor, bits, mask in JOINS:
        halves = halves * factor >> bits & mask
    values = halves.astype(np.int64)
    number = values[:, 0] * 10**8 + values[:, 1]  # the point counted as a digit 0
    powers = POWERS[decimals].astype(np.int64)
    number -= np.where(has_point, number // (10 * powers) * 9 * powers, 0)
    usual = (lengths == short) & (lengths > has_point) & single & (wrong[:, 0] | wrong[:, 1] == 0)
    usual &= number < EXACT
    parsed = number / POWERS[decimals]  # one rounding, as float() does
    parsed = np.where(negative, -parsed, parsed)
    for row in np.flatnonzero(~usual):
        try:
            parsed[row] = parse_logarithm(text.characters[starts[row] : ends[row]].tobytes().decode())
        except ValueError:
            return None
    return parsed


def parse_logarithm(text: str) -> float:
    """Parse a logarithm, as float() does. ValueError for anything else, and for the underscores and digits
    outside ASCII that float() accepts."""
    if not text.isascii() or "_" in text:
        raise ValueError
    return float(text)


class WordLookup:
    """Maps words, as bytes, to their ids: an open-addressing hash table in arrays. `words`: by id."""

    def __init__(self, words: Sequence[str]) -> None:
        encoded = [word.encode() for word in words]
        self.long = {word: number for number, word in enumerate(encoded) if len(word) > LONGEST}
        self.lengths = np.fromiter(map(len, encoded), np.int64, len(words))
        text = PaddedText.of(b"".join(encoded))
        starts = np.cumsum(self.lengths) - self.lengths + len(PADDING)
        width = min(LONGEST, int(self.lengths.max(initial=1)))
        self.eights = np.zeros((len(words), -(-width // 8)), np.uint64)
        short = np.flatnonzero(self.lengths <= LONGEST)
        columns = word_eights(text, starts, self.lengths)
        for column, (indices, eights) in enumerate(columns):
            self.eights[indices, column] = eights
        self.hashes = hash_words(columns, len(words))
        bits = (2 * len(words)).bit_length()
        self.shift, self.mask = np.uint64(64 - bits), (1 << bits) - 1
        self.slots = np.full(1 << bits, -1, np.int32)
        rows = short
        slots = (self.hashes[rows] >> self.shift).astype(np.int64)
        while len(rows):
            free = self.slots[slots] < 0
            self.slots[slots[free]] = rows[free]
            left = self.slots[slots] != rows
            rows, slots = rows[left], slots[left] + 1 & self.mask

    def find(self, text: PaddedText, starts: Ints, lengths: Ints) -> Ints | None:
        """Look up the ids (P,) of words in `text`, given by positions and lengths. None if one is unknown."""
        columns = word_eights(text, starts, lengths)
        hashes = hash_words(columns, len(starts))
        numbers = self.slots[(hashes >> self.shift).astype(np.int64)].astype(np.int64)
        rows = np.flatnonzero((numbers >= 0) & (self.hashes[numbers] != hashes))
        slots = (hashes[rows] >> self.shift).astype(np.int64)
        while len(rows):
            slots = slots + 1 & self.mask
            numbers[rows] = self.slots[slots]
            left = (numbers[rows] >= 0) & (self.hashes[numbers[rows]] != hashes[rows])
            rows, slots = rows[left], slots[left]
        for row in np.flatnonzero(lengths > LONGEST):
            word = text.characters[starts[row] : starts[row] + lengths[row]].tobytes()
            numbers[row] = self.long.get(word, -1)
        if numbers.min(initial=0) < 0 or (self.lengths[numbers] != lengths).any():
            return None
        for column, (indices, eights) in enumerate(columns):
            if (self.eights[numbers[indices], column] != eights).any():  # another word with the same hash
                return None
        return numbers


def word_eights(text: PaddedText, starts: Ints, lengths: Ints) -> list[tuple[Ints | slice, Words64]]:
    """Cut words, given by position and length in bytes (P,), into columns of eight bytes, padded with zeros.
    Returns, for each column, the indices of the words that have bytes in it, and these bytes. The first
    column has all words, as a slice; words longer than LONGEST are zeros there, and in no other column."""
    columns: list[tuple[Ints | slice, Words64]] = []
    left = np.where(lengths <= LONGEST, lengths, 0)
    columns.append((slice(None), text.eights[starts] & FIRST_BYTES[np.minimum(left, 8)]))
    rows = np.flatnonzero(left > 8)
    while len(rows):
        left, begins = lengths[rows] - 8 * len(columns), starts[rows] + 8 * len(columns)
        columns.append((rows, text.eights[begins] & FIRST_BYTES[np.minimum(left, 8)]))
        rows = rows[left > 8]
    return columns


def hash_words(columns: list[tuple[Ints | slice, Words64]], count: int) -> Words64:
    """Hash `count` words, given as columns of eight bytes (see `word_eights`): (count,)"""
    hashes = np.zeros(count, np.uint64)
    for rows, eights in columns:
        mixed = (hashes[rows] ^ eights) * MIX
        hashes[rows] = mixed ^ mixed >> np.uint64(29)
    return hashes * MIX


class NgramRows(NamedTuple):
    """The n-grams of some lines of a section."""

    log10: Floats  # (R,) log10 p
    grams: Ints  # (R, n) word ids
    backoff: Floats  # (R,) log10; 0 where a line has none


def parse_rows(lines: bytes, n: int, words: WordLookup) -> NgramRows | None:
    """Parse lines of n-grams of order n: log10 p, a tab, words separated by blanks and, on some lines, a tab
    and a back-off weight. None if a line is irregular or malformed, or has a word that `words` lacks."""
    if not lines.endswith(b"\n"):
        return None
    text = PaddedText.of(lines)
    positions = np.flatnonzero(text.characters <= BLANK)
    marks = text.characters[positions]
    last = np.flatnonzero(marks == LINE_END)
    counts = np.diff(last, prepend=-1)
    weighted = counts == n + 2
    if not (weighted | (counts == n + 1)).all():
        return None
    fields = (last - counts + 1)[:, None] + np.arange(n + 1)  # the marks after p and each word
    after = marks[fields]
    if (after[:, 0] != TAB).any() or (after[:, 1:n] != BLANK).any() or (after[weighted, n] != TAB).any():
        return None
    ends = positions[fields]
    line_ends = positions[last]
    log10 = parse_numbers(text, np.append(len(PADDING), line_ends[:-1] + 1), ends[:, 0])
    weights = parse_numbers(text, ends[weighted, n] + 1, line_ends[weighted])
    starts = ends[:, :n] + 1
    numbers = words.find(text, starts.ravel(), (ends[:, 1:] - starts).ravel())
    if log10 is None or weights is None or numbers is None:
        return None
    if not ((log10 <= 0).all() and np.isfinite(weights).all()):
        return None
    backoff = np.zeros(len(log10))
    backoff[weighted] = weights
    return NgramRows(log10, numbers.reshape(-1, n), backoff)
