"""Noise on actions while collecting (paper appendix A.2, Figure 13)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from amago.rollout.random_policy import random_actions
from amago.rollout.settings import ExplorationSettings
from amago.types import Array, EnvSpec, Timestep

_EDGE_STEPS = 3
"""kind "ends": the last steps of a rollout that keep the annealed noise."""


def annealed(
    settings: ExplorationSettings, progress: float, time: Array, horizon: int | Array
) -> Array:
    """ε of a rollout's step `time` when `progress` of the annealing has passed."""
    progress = min(progress, 1.0)
    start = settings.start[0] + progress * (settings.start[1] - settings.start[0])
    end = settings.end[0] + progress * (settings.end[1] - settings.end[0])
    return start - (start - end) * np.minimum(time / horizon, 1.0)


class Exploration:
    """Annealed noise whose strength each rollout draws anew.

    `steps` counts the actions that were executed, of all lanes over the whole run; it is all
    that a checkpoint needs, because `begin` derives the random stream of each epoch from (seed,
    epoch). `horizons` says when the rollouts of each lane end, where tasks differ;
    `rollout_steps` stands in for unknown ones.
    """

    def __init__(
        self,
        settings: ExplorationSettings,
        spec: EnvSpec,
        *,
        num_lanes: int,
        anneal_steps: int,
        rollout_steps: int,
        seed: int,
        horizons: Sequence[int | None] | None = None,
    ) -> None:
        self.settings, self.spec, self.seed = settings, spec, seed
        self.anneal_steps = anneal_steps * num_lanes
        known = [spec.horizon] * num_lanes if horizons is None else horizons
        self.horizon = np.array([horizon or rollout_steps for horizon in known])
        self.steps = 0
        self.multiplier = np.zeros(num_lanes)
        self.begin(0)

    def begin(self, epoch: int) -> None:
        """Start the random stream of one epoch."""
        self.rng = np.random.default_rng((self.seed, epoch))

    def epsilon(self, time: Array, lanes: Array | int) -> Array:
        """ε of some lanes at steps of their rollouts, before the multipliers of these."""
        horizon = self.horizon[lanes]
        noise = annealed(self.settings, self.steps / self.anneal_steps, time, horizon)
        if self.settings.kind == "annealed":
            return noise
        edge = (time == 0) | (time >= horizon - _EDGE_STEPS)
        return np.where(edge, noise, 0.5 / horizon)

    def __call__(self, rows: Timestep, action: Array, lanes: Array) -> Array:
        """The actions of some lanes with noise; rows that are `last` only wait for a reset."""
        begins = rows.time == 0
        self.multiplier[lanes[begins]] = self.rng.random(int(begins.sum()))
        epsilon = self.multiplier[lanes] * self.epsilon(rows.time, lanes)
        self.steps += len(lanes) - int(rows.last.sum())
        if self.spec.action.kind == "continuous":
            noise = self.rng.standard_normal(action.shape, dtype=np.float32)
            noisy: Array = action + epsilon[:, None].astype(np.float32) * noise
            return noisy.clip(-1.0, 1.0)
        # Every dimension of a factored action explores by itself.
        draws = self.rng.random(action.shape)
        explore = draws < epsilon.reshape(-1, *[1] * (action.ndim - 1))
        return np.where(explore, random_actions(self.rng, self.spec.action, rows), action)
