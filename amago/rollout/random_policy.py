"""Uniformly random play, as a reference."""

from __future__ import annotations

import numpy as np

from amago.types import ACTION_MASK, ActionSpec, Array, EnvSpec, Timestep


def _random_allowed(rng: np.random.Generator, mask: Array) -> Array:
    """One allowed action per row of a mask; a row that allows nothing allows everything."""
    allowed = mask.astype(bool)
    allowed = allowed | ~allowed.any(-1, keepdims=True)
    chosen: Array = np.argmax(rng.random(allowed.shape) * allowed, -1)
    return chosen


def random_actions(rng: np.random.Generator, action: ActionSpec, rows: Timestep) -> Array:
    """One agent action per row, uniform over what its mask allows."""
    count, mask = len(rows), rows.obs.get(ACTION_MASK)
    if action.kind == "continuous":
        return rng.uniform(-1.0, 1.0, (count, action.size)).astype(np.float32)
    if action.kind == "multi_binary":
        return rng.integers(2, size=(count, action.size))
    if action.kind == "discrete":
        if mask is None:
            return rng.integers(action.size, size=count)
        return _random_allowed(rng, mask)
    if mask is None:
        return rng.integers(action.sizes, size=(count, len(action.sizes)))
    parts = np.split(mask, np.cumsum(action.sizes)[:-1], -1)
    return np.stack([_random_allowed(rng, part) for part in parts], -1)


class RandomPolicy:
    """Any allowed action with the same probability; implements amago.types.Policy."""

    def __init__(self, spec: EnvSpec, seed: int) -> None:
        self.action, self.rng = spec.action, np.random.default_rng(seed)

    def initial_state(self, num_lanes: int) -> None:
        return None

    def act(self, timestep: Timestep, state: None) -> tuple[Array, None]:
        return random_actions(self.rng, self.action, timestep), None

    def select(self, state: None, lanes: Array) -> None:
        return None
