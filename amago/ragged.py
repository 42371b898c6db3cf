"""Rows that each own a varying number of goals: (offsets [R+1], values [total, size]).

Row r owns values[offsets[r]:offsets[r+1]].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Ragged = tuple[Array, Array]


def empty(num_rows: int, size: int, dtype: Any) -> Ragged:
    """Rows that own nothing."""
    return np.zeros(num_rows + 1, np.int64), np.zeros((0, size), dtype)


def of_counts(counts: Array, values: Array) -> Ragged:
    """Values in the order of their rows, of which row r owns counts[r]."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets, values


def rows_of(ragged: Ragged) -> Array:
    """The row of every value, [total]."""
    offsets = ragged[0]
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def select(ragged: Ragged, rows: Array) -> Ragged:
    """Some rows, by index or by mask, in the order asked for."""
    offsets, values = ragged
    counts = np.diff(offsets)[rows]
    # The position of every kept value: where its row begins, plus its rank within the row.
    chosen = of_counts(counts, values)
    rank = np.arange(chosen[0][-1]) - np.repeat(chosen[0][:-1], counts)
    return chosen[0], values[np.repeat(offsets[:-1][rows], counts) + rank]


def clear(ragged: Ragged, rows: Array) -> Ragged:
    """The same with some rows emptied."""
    counts = np.diff(ragged[0])
    keep = np.ones(len(counts), np.bool_)
    keep[rows] = False
    return of_counts(counts * keep, ragged[1][keep[rows_of(ragged)]])


def concatenate(parts: Sequence[Ragged]) -> Ragged:
    """The rows of all parts, one part after the other."""
    counts = np.concatenate([np.diff(offsets) for offsets, _ in parts])
    return of_counts(counts, np.concatenate([values for _, values in parts]))
