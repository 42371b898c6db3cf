"""What a step of an environment returns: numbers and flags, and nothing that looks like them."""

from __future__ import annotations

from typing import Any

import numpy as np


def number_of(reward: Any) -> float:
    """A reward; a TypeError for None, a text or several numbers."""
    value = np.asarray(reward)
    if value.size != 1 or value.dtype.kind not in "biuf":
        raise TypeError(f"expected a number as reward, got {reward!r}")
    return float(value.reshape(()))


def flag_of(value: Any) -> bool:
    """Whether an episode has ended; a TypeError for a text such as "False", which is true."""
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "bi":
        raise TypeError(f"expected True or False as terminated and truncated, got {value!r}")
    return bool(array.reshape(()))
