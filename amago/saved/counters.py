"""The counters of a checkpoint, `state.json`: what they must be before a run believes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

_MOST = 2**53
"""Largest counter: beyond it, neither float64 nor the metrics' readers count exactly."""


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_count, value))


def _pair(value: Any) -> bool:
    return _counts(value) and len(value) == 2


_FITS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("epoch", "env_steps", "updates", "skipped"), _count),
    "episodes": _counts,
    "curriculum": lambda value: isinstance(value, dict),
    "window": lambda value: _pair(value) and value[0] <= value[1],
    "offsets": _pair,
    "best_return": lambda value: value is None or _number(value),
    "best_epoch": lambda value: value is None or _count(value),
    "exploration_steps": lambda value: _number(value) and value >= 0,
    "seconds": lambda value: _number(value) and value >= 0,
}


def wrong_counter(state: dict[str, Any], name: str) -> str | None:
    """What is wrong with the counters of the checkpoint of that name; None if nothing is."""
    for key, fits in _FITS.items():
        if key not in state:
            return f"{key} is missing"
        if not fits(state[key]):
            return f"{key} is {str(state[key])[:100]}"
    if f"{state['epoch']:06d}" != name:
        return f"epoch is {state['epoch']}, but the folder is {name}"
    collected = state.get("collected")
    return None if collected is None or _count(collected) else f"collected is {collected}"
