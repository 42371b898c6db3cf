"""Rows that each own a varying number of goals: (offsets [R+1], values [total, size]).

Row r owns values[offsets[r]:offsets[r+1]].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[Any]
Ragged = tuple[_Array, _Array]


def empty(num_rows: int, size: int, dtype: Any) -> Ragged:
    """Rows that own nothing."""
    return np.zeros(num_rows + 1, np.int64), np.zeros((0, size), dtype)


def of_counts(counts: _Array, values: _Array) -> Ragged:
    """Values in the order of their rows, of which row r owns counts[r]."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    counts.cumsum(out=offsets[1:])
    return offsets, values


def counts_of(ragged: Ragged) -> _Array:
    """How many values each row owns, [R]."""
    offsets = ragged[0]
    counts: _Array = offsets[1:] - offsets[:-1]  # np.diff takes five times as long
    return counts


def rows_of(ragged: Ragged) -> _Array:
    """The row of every value, [total]."""
    return np.arange(len(ragged[0]) - 1).repeat(counts_of(ragged))


def select(ragged: Ragged, rows: _Array) -> Ragged:
    """Some rows, by index or by mask, in the order asked for."""
    offsets, values = ragged
    counts = counts_of(ragged)[rows]
    chosen, _ = of_counts(counts, values)
    # A kept value moves by as much as the beginning of its row does.
    moved = (offsets[:-1][rows].astype(np.int64) - chosen[:-1]).repeat(counts)
    return chosen, values[np.arange(len(moved)) + moved]


def clear(ragged: Ragged, rows: _Array) -> Ragged:
    """The same with some rows emptied."""
    counts = counts_of(ragged)
    keep = np.ones(len(counts), np.bool_)
    keep[rows] = False
    return of_counts(counts * keep, ragged[1][keep[rows_of(ragged)]])


def concatenate(parts: Sequence[Ragged]) -> Ragged:
    """The rows of all parts, one part after the other."""
    counts = np.concatenate([counts_of(part) for part in parts])
    return of_counts(counts, np.concatenate([values for _, values in parts]))
