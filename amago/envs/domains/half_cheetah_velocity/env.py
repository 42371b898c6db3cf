"""Half-Cheetah Velocity: run at a speed that only the reward tells [Finn et al. 2017]."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from amago.envs.extras import need, render_without_display
from amago.types import Array

render_without_display()
need("mujoco", "mujoco")
_half_cheetah = need("gymnasium.envs.mujoco.half_cheetah_v5", "mujoco")

_FASTEST = 3.0
_EFFORT_WEIGHT = 0.05


class HalfCheetahVelocity(gym.Env[Array, Array]):
    """One trial of HalfCheetah-v5, rewarded with -|v - target| - .05‖a‖².

    The target speed, uniform in 0..3, belongs to the seed of `reset` and outlives later resets
    with `options={"same_world": True}`, which the Trials wrapper gives between trials.
    """

    metadata = _half_cheetah.HalfCheetahEnv.metadata
    keeps_world = True

    def __init__(self, horizon: int = 200, render_mode: str | None = None) -> None:
        if horizon < 1:
            raise ValueError(f"expected horizon to be at least 1, got {horizon}")
        self.env = _half_cheetah.HalfCheetahEnv(
            ctrl_cost_weight=_EFFORT_WEIGHT, render_mode=render_mode
        )
        self.render_mode = render_mode
        self.metadata = self.env.metadata
        self.observation_space = self.env.observation_space
        self.action_space = self.env.action_space
        self.horizon = horizon
        self.target: float | None = None
        self._time = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        keep = bool(options and options.get("same_world")) and self.target is not None
        obs, info = self.env.reset(seed=seed)
        self.np_random = self.env.np_random  # one generator for both, seeded once
        if seed is not None or not keep:
            self.target = float(self.np_random.uniform(0.0, _FASTEST))
        self._time = 0
        return obs, info

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        assert self.target is not None, "reset comes first"
        obs, _, _, _, info = self.env.step(action)
        self._time += 1
        reward = float(info["reward_ctrl"] - abs(info["x_velocity"] - self.target))
        return obs, reward, False, self._time >= self.horizon, info

    def render(self) -> Array | None:
        frame: Array | None = self.env.render()
        return frame

    def close(self) -> None:
        self.env.close()
