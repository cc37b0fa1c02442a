"""Scores in few bits: no value is far from its own, and what fits is kept."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.decoder import system
from smt_bridge.decoder.quantization import clusters, code_book, nearest, quantize, quantized
from tests.smt_bridge.decoder.models import write_model

RNG = np.random.default_rng(1)


def test_few_values_are_kept() -> None:
    """nan too, once for all of its rows."""
    values = RNG.choice(np.array([-100.0, -1.5, -0.25, 0.0, np.nan], np.float32), (300, 2))
    codes, book = quantized(values, 8)
    assert codes.dtype == np.uint8 and book.shape == (2, 5)
    decoded = book[np.arange(2), codes]
    np.testing.assert_array_equal(decoded, values)


@pytest.mark.parametrize("missing", [False, True])
def test_a_code_is_that_of_the_nearest_value(missing: bool) -> None:
    values = np.log(RNG.uniform(1e-6, 1, 5000)).astype(np.float32)
    if missing:
        values[::7] = np.nan
    book = code_book(values, 64)
    known = book[~np.isnan(book)]
    assert len(book) <= 64 and (np.diff(known) > 0).all() and np.isnan(book).sum() == missing
    codes = nearest(values, book)
    for value, code in zip(values[:200], codes[:200], strict=True):
        if np.isnan(value):
            assert np.isnan(book[code])
        else:
            assert abs(value - book[code]) == np.abs(known - value).min()


def test_clusters_are_better_than_equal_steps() -> None:
    """Heavy values are nearly kept; the squared error is below that of as many values at equal distances."""
    values, counts = np.unique(np.round(RNG.normal(-4, 2, 20_000), 3), return_counts=True)
    counts[10] = 50_000
    centers = clusters(values, counts.astype(np.float64), 100)
    assert len(centers) <= 100 and np.abs(centers - values[10]).min() < 1e-3

    def error(book: np.ndarray) -> float:
        return float(counts @ np.abs(values[:, None] - book).min(1) ** 2)

    assert error(centers) < 0.5 * error(np.linspace(values[0], values[-1], 100))


@pytest.mark.parametrize(("bits", "kind"), [(8, np.uint8), (16, np.uint16)])
def test_a_table_of_few_values_is_the_same(bits: int, kind: type, tmp_path: Path) -> None:
    """Fewer rows than codes: every score is exact, and nothing else changes."""
    table = system.load(str(write_model(tmp_path, 1)), use_cache=False).table
    small = quantize(table, bits)
    assert small.is_sound() and small.scores.dtype == small.reordering.dtype == kind
    every = np.arange(table.rows)
    np.testing.assert_array_equal(small.log_scores(every), table.log_scores(every))
    np.testing.assert_array_equal(small.log_reordering(every), table.log_reordering(every))
    assert small.rows == table.rows and [*map(small.text, range(table.rows))] == [
        *map(table.text, range(table.rows))
    ]
    broken = replace(small, score_values=small.score_values[:, :1])
    assert not broken.is_sound()
    with pytest.raises(ValueError, match="already"):
        quantize(small, bits)


def test_without_reordering(tmp_path: Path) -> None:
    table = system.load(str(write_model(tmp_path, 1, reordering=False)), use_cache=False).table
    small = quantize(table, 8)
    assert small.is_sound() and small.log_reordering(np.arange(3)).shape == (3, 0)
