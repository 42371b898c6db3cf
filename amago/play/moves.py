"""What a person at the keyboard can do in an environment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from amago.envs.catalogue import action_names
from amago.types import ActionSpec, Array

_KEYS = "1234567890qwertyuiopasdfghjklzxcvbnm"
"""For actions without a key of their own, in the browser's names."""
_ARROWS = {"left": "ArrowLeft", "up": "ArrowUp", "right": "ArrowRight", "down": "ArrowDown"}

_OWN_KEYS = {"stay": "s", "noop": "s", "forward": "ArrowUp"}


@dataclass(frozen=True)
class Move:
    """An action with a name and a key."""

    name: str
    key: str
    """As KeyboardEvent.key has it."""
    action: Array
    """For one lane."""


def moves_of(env_id: str, action: ActionSpec) -> list[Move]:
    """Every action that a person can choose; empty where that would take more than a key."""
    if action.kind == "continuous" and action.size == 2:
        return [
            Move(name, key, np.array([vector], np.float32))
            for name, key, vector in (
                ("left", "ArrowLeft", (-1, 0)),
                ("up", "ArrowUp", (0, 1)),
                ("right", "ArrowRight", (1, 0)),
                ("down", "ArrowDown", (0, -1)),
                ("stay", "s", (0, 0)),
            )
        ]
    if action.kind != "discrete" or action.size > len(_KEYS):
        return []
    names = action_names(env_id, action)
    keys = {name: _ARROWS.get(name) or _OWN_KEYS.get(name) for name in names}
    spare = iter([key for key in _KEYS if key not in keys.values()])
    return [
        Move(name, keys[name] or next(spare), np.array([index])) for index, name in enumerate(names)
    ]
