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
    return np.full((height, width, 3), colour, np.uint8)


def box(frame: Array, top: float, left: float, bottom: float, right: float, colour: Colour) -> None:
    """Fill a rectangle, cut at the frame's edges."""
    rows = slice(max(0, round(top)), max(0, round(bottom)))
    columns = slice(max(0, round(left)), max(0, round(right)))
    frame[rows, columns] = colour


def disc(frame: Array, y: float, x: float, radius: float, colour: Colour) -> None:
    """Fill a circle, cut at the frame's edges."""
    top, left = max(0, int(y - radius)), max(0, int(x - radius))
    square = frame[top : max(0, int(y + radius) + 2), left : max(0, int(x + radius) + 2)]
    rows, columns = np.ogrid[: square.shape[0], : square.shape[1]]
    square[(rows + top - y) ** 2 + (columns + left - x) ** 2 <= radius**2] = colour
