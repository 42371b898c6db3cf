"""Half-Cheetah Velocity: run at a speed that only the reward tells [Finn et al. 2017]."""

from __future__ import annotations

from typing import Any

import numpy as np

from amago.envs.suites.extras import need
from amago.types import Array

need("mujoco", "mujoco")
from gymnasium.envs.mujoco.half_cheetah_v5 import HalfCheetahEnv  # noqa: E402

FASTEST = 3.0


class HalfCheetahVelocity(HalfCheetahEnv):
    """One trial of HalfCheetah-v5, rewarded with -|v - target| - .05‖a‖².

    The target speed, uniform in 0..3, belongs to the seed of `reset` and outlives later resets
    with `options={"same_world": True}`, which the Trials wrapper gives between trials.
    """

    keeps_world = True

    def __init__(self, horizon: int = 200, render_mode: str | None = None) -> None:
        if horizon < 1:
            raise ValueError(f"expected horizon to be at least 1, got {horizon}")
        super().__init__(ctrl_cost_weight=0.05, render_mode=render_mode)
        self.horizon = horizon
        self.target: float | None = None
        self._time = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        keep = bool(options and options.get("same_world")) and self.target is not None
        obs, info = super().reset(seed=seed)
        if seed is not None or not keep:
            self.target = float(self.np_random.uniform(0.0, FASTEST))
        self._time = 0
        return obs, info

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        obs, reward, _, _, info = super().step(action)
        self._time += 1
        return obs, float(reward), False, self._time >= self.horizon, info

    def _get_rew(self, x_velocity: float, action: Array) -> tuple[float, dict[str, float]]:
        off_target, effort = abs(x_velocity - self.target), self.control_cost(action)
        return -off_target - effort, {"off_target": off_target, "effort": effort}
