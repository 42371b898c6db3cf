"""Uniformly random play, as a reference."""

from __future__ import annotations

import numpy as np

from amago.types import ACTION_MASK, Array, EnvSpec, Timestep


def random_allowed(rng: np.random.Generator, mask: Array) -> Array:
    """One allowed action per row of a mask; a row that allows nothing allows everything."""
    allowed = mask.astype(bool)
    allowed = allowed | ~allowed.any(-1, keepdims=True)
    chosen: Array = np.argmax(rng.random(allowed.shape) * allowed, -1)
    return chosen


class RandomPolicy:
    """Any allowed action with the same probability; implements amago.types.Policy."""

    def __init__(self, spec: EnvSpec, seed: int) -> None:
        self.action, self.rng = spec.action, np.random.default_rng(seed)

    def initial_state(self, num_lanes: int) -> None:
        return None

    def act(self, timestep: Timestep, state: None) -> tuple[Array, None]:
        count, size = len(timestep), self.action.size
        mask = timestep.obs.get(ACTION_MASK)
        if self.action.kind == "continuous":
            action: Array = self.rng.uniform(-1.0, 1.0, (count, size)).astype(np.float32)
        elif mask is None:
            action = self.rng.integers(size, size=count)
        else:
            action = random_allowed(self.rng, mask)
        return action, None
