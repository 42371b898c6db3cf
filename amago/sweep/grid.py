"""Grids of settings: every combination of some values is an arm of a sweep."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def combinations(grid: Sequence[str]) -> list[list[str]]:
    """All combinations of settings given as key=value,value; one without any for an empty grid."""
    axes: dict[str, list[str]] = {}
    for assignment in grid:
        key, equals, text = (part.strip() for part in assignment.partition("="))
        values = [value.strip() for value in text.split(",")]
        if not (key and equals and all(values)):
            raise ValueError(
                f"--grid expects key=value,value, got {assignment!r}; for example "
                "--grid optim.learning_rate=1e-4,3e-4"
            )
        key = key.lstrip("-").replace("-", "_")
        if key in axes:
            raise ValueError(f"--grid got {key} twice; give all its values at once: {key}=a,b,c")
        axes[key] = list(dict.fromkeys(values))
    choices = ([f"{key}={value}" for value in values] for key, values in axes.items())
    return [list(combination) for combination in itertools.product(*choices)]
