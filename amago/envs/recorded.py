"""Recorded values against the space that they claim to be of."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import Space, spaces

from amago.types import Array


def check_recorded(values: Array, space: Space[Any], what: str) -> None:
    """ValueError unless every row of `values` [N, ...] may have come from the space."""
    if isinstance(space, spaces.Text):
        if values.dtype.kind not in "UO":
            raise ValueError(f"{what}: expected texts, got {values.dtype}; record them as strings")
        return
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{what}: expected numbers of {space}, got {values.dtype}")
    if values.shape[1:] != (space.shape or ()):
        raise ValueError(
            f"{what}: expected rows of shape {list(space.shape or ())}, got "
            f"{list(values.shape[1:])}; the data are of another space"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{what} is not finite; leave that episode out")
    low, high, whole = _limits(space)
    if whole and values.dtype.kind == "f" and (values != np.rint(values)).any():
        unit_image = space.dtype == np.uint8 and values.max() <= 1.0
        raise ValueError(
            f"{what}: expected whole numbers of {space}, got {values[values % 1 != 0].flat[0]:g}; "
            + ("scale 0..1 to 0..255" if unit_image else "record what the environment gave")
        )
    # What was stored with fewer digits may lie just outside.
    slack = 0.0 if whole else 1e-6 * (1.0 + np.maximum(np.abs(low), np.abs(high)))
    outside = (values < low - slack) | (values > high + slack)
    if outside.any():
        raise ValueError(
            f"{what}: expected values within {space}, got {values[outside].flat[0]:g}; the data "
            "are of another space"
        )


def _limits(space: Space[Any]) -> tuple[Array, Array, bool]:
    """Smallest and largest values, and whether there are only whole ones."""
    if isinstance(space, spaces.Discrete):
        return np.asarray(space.start), np.asarray(space.start + space.n - 1), True
    if isinstance(space, spaces.MultiDiscrete):
        return space.start, space.start + space.nvec - 1, True
    if isinstance(space, spaces.MultiBinary):
        return np.zeros(()), np.ones(()), True
    assert isinstance(space, spaces.Box), space
    low, high = (np.asarray(edge, np.float64) for edge in (space.low, space.high))
    return low, high, np.dtype(space.dtype).kind in "biu"
