"""Numbers and words by column: the same as one by one."""

import random

import numpy as np
import pytest

from nmt.ngram import columns
from nmt.ngram.columns import PADDING, PaddedText, WordLookup


def test_numbers_are_formatted_and_rounded_as_by_printf() -> None:
    rng = np.random.default_rng(1)
    digits = np.round(-10 * rng.random(2000), 8)
    values = np.concatenate(
        [
            -120 * rng.random(2000), -(10.0 ** rng.uniform(-9, 3, 2000)), rng.normal(size=500),
            digits, digits - 5e-9, np.round(digits, 3), -np.arange(120.0), 10.0 ** np.arange(-9, 9),
            [0.0, -0.0, np.inf, -np.inf, np.nan, -99.9, -9.99999999, -1e-300, -1.2345678e-100, -1e300],
        ]
    )  # fmt: skip
    texts, starts, lengths = columns.format_numbers(values, "\t")
    for value, row, start, length in zip(values, texts, starts, lengths, strict=True):
        assert row[start : start + length].tobytes().decode() == f"{value:.8g}\t"
    rounded = np.array([float(f"{value:.8g}") for value in values])
    assert columns.round_numbers(values).tobytes() == rounded.tobytes()


def positions(pieces: list[bytes]) -> tuple[PaddedText, columns.Ints, columns.Ints]:
    """A text of pieces with blanks between them, and where each piece begins and how long it is."""
    lengths = np.array(list(map(len, pieces)))
    starts = len(PADDING) + np.cumsum(lengths + 1) - lengths - 1
    return PaddedText.of(b" ".join(pieces)), starts, lengths


def test_numbers_are_parsed_as_by_float() -> None:
    rng = random.Random(2)
    values = [-(10.0 ** rng.uniform(-6, 2)) for _ in range(500)]
    texts = [f"{value:.{rng.randrange(1, 18)}{kind}}" for value in values for kind in "fge"]
    texts += ["0", "-0", "-0.0", "5.", ".5", "-.5", "+1", "1" * 15, "9" * 16, "9" * 17, "0.1", "-99", "1e3"]
    texts += ["-inf", "123456789012345.", "1.23456789012345", "12345678.9012345", "0000000000000001"]
    text, starts, lengths = positions([number.encode() for number in texts])
    parsed = columns.parse_numbers(text, starts, starts + lengths)
    assert parsed is not None
    assert parsed.tobytes() == np.array([float(number) for number in texts]).tobytes()


@pytest.mark.parametrize(
    "wrong", ["", "-", ".", "-.", "1.2.3", "1.23456789.1", "1_0", "1/2", "1:2", "--1", "x", "٣", "1e", "\x00"]
)
def test_what_is_no_number(wrong: str) -> None:
    text, starts, lengths = positions([b"-1.5", wrong.encode(), b"2"])
    assert columns.parse_numbers(text, starts, starts + lengths) is None
    with pytest.raises(ValueError):
        columns.logarithm(wrong)


def test_words_are_found_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    words = ["", *{"é" * rng.randrange(1, 60) + str(rng.randrange(99)) for _ in range(900)}]
    words += ["x" * size for size in (7, 8, 9, 15, 16, 17, 63, 64, 65, 66)]
    table = WordLookup(words)
    numbers = [rng.randrange(len(words)) for _ in range(3000)]
    found = table.find(*positions([words[number].encode() for number in numbers]))
    assert found is not None and found.tolist() == numbers
    for new in ("x", "x" * 10, "x" * 67, "\0", "é" * 4 + "e"):
        assert table.find(*positions([b"xxxxxxx", new.encode()])) is None
    # words with the same hash are told apart by their bytes
    monkeypatch.setattr(columns, "hash_words", lambda columns, count: np.zeros(count, np.uint64))
    table = WordLookup(["a", "b"])
    assert table.find(*positions([b"c"])) is None and table.find(*positions([b"a", b"b"])) is None
