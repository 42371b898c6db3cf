"""Shapes on an RGB array, enough to see what an agent does."""

from __future__ import annotations

import numpy as np

from amago.types import Array

Colour = tuple[int, int, int]
FLOOR: Colour = (236, 236, 232)
SHADE: Colour = (216, 216, 210)
WALL: Colour = (56, 60, 70)
AGENT: Colour = (38, 104, 190)
GOAL: Colour = (58, 150, 84)
HINT: Colour = (230, 170, 40)
MARK: Colour = (150, 150, 150)
FOG: Colour = (96, 103, 118)


def canvas(height: int, width: int, colour: Colour) -> Array:
    """A frame of one colour."""
    return enlarged(np.array(colour, np.uint8)[None, None], height, width)


def enlarged(cells: Array, height: int, width: int | None = None) -> Array:
    """Every cell of a small frame as a block of that size; as wide as high unless said.

    Columns first: NumPy copies whole rows many times faster than single pixels.
    """
    return cells.repeat(height if width is None else width, axis=1).repeat(height, axis=0)


def box(frame: Array, top: float, left: float, bottom: float, right: float, colour: Colour) -> None:
    """Fill a rectangle, cut at the frame's edges."""
    rows = slice(max(0, round(top)), max(0, round(bottom)))
    columns = slice(max(0, round(left)), max(0, round(right)))
    block = frame[rows, columns]
    block[:1] = colour
    block[1:] = block[:1]  # whole rows are copied faster than pixels


def disc(frame: Array, y: float, x: float, radius: float, colour: Colour) -> None:
    """Fill a circle, cut at the frame's edges."""
    top, left = max(0, int(y - radius)), max(0, int(x - radius))
    square = frame[top : max(0, int(y + radius) + 2), left : max(0, int(x + radius) + 2)]
    rows, columns = np.ogrid[: square.shape[0], : square.shape[1]]
    square[(rows + top - y) ** 2 + (columns + left - x) ** 2 <= radius**2] = colour
