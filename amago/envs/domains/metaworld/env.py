"""Meta-World ML-1: one manipulation task, its goal hidden [Yu et al. 2019, arXiv:1910.10897]."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import gymnasium as gym
import numpy as np

from amago.checks import did_you_mean
from amago.envs.extras import need, render_without_display
from amago.types import Array

render_without_display()
metaworld = need("metaworld", "metaworld")


class MetaWorldML1(gym.Env[Array, Array]):
    """One trial of an ML-1 task, named as in Meta-World with or without its version ("reach").

    The seed of `reset` picks one of the split's 50 goals, which outlives later resets with
    `options={"same_world": True}`. The splits are drawn from `goals_seed` and the seed after
    it, as the benchmark does. Success, once reached, counts until the trial is over.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 80}  # noqa: RUF012
    keeps_world = True

    def __init__(
        self,
        task: str = "reach",
        split: Literal["train", "test"] = "train",
        goals_seed: int = 0,
        horizon: int = 500,
        render_mode: str | None = None,
    ) -> None:
        if split not in ("train", "test"):
            raise ValueError(f"expected split to be 'train' or 'test', got {split!r}")
        if not 1 <= horizon <= 500:
            raise ValueError(f"expected a horizon of 1 to 500, Meta-World's limit, got {horizon}")
        cls, goals = _benchmark(_full_name(task), goals_seed)
        self.goals = goals[split]
        self.horizon = horizon
        self.render_mode = render_mode
        self.env = cls(render_mode=render_mode)
        self.env.set_task(self.goals[0])
        self.observation_space = self.env.sawyer_observation_space
        self.action_space = self.env.action_space
        self.goal: int | None = None
        self._time, self._success = 0, False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        keep = bool(options and options.get("same_world")) and self.goal is not None
        if seed is not None or not keep:
            self.goal = int(self.np_random.integers(len(self.goals)))
            self.env.set_task(self.goals[self.goal])
        self._time, self._success = 0, False
        obs, _ = self.env.reset()
        return self._bounded(obs), {"success": False}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        obs, reward, _, _, info = self.env.step(action)
        self._time += 1
        self._success |= bool(info["success"])
        over = self._time >= self.horizon
        return self._bounded(obs), float(reward), False, over, {**info, "success": self._success}

    def render(self) -> Array | None:
        if self.render_mode is None:
            return None
        frame: Array = self.env.render()
        return frame

    def close(self) -> None:
        self.env.close()

    def _bounded(self, obs: Array) -> Array:
        """Meta-World clips the observations of steps, but not those of resets."""
        space = self.observation_space
        assert isinstance(space, gym.spaces.Box)
        return np.clip(obs, space.low, space.high)


def _full_name(task: str) -> str:
    """Meta-World's name of a task: reach becomes reach-v3."""
    names = metaworld.ML1.ENV_NAMES
    found = task if task in names else f"{task}-v3"
    if found in names:
        return found
    short = sorted(name.removesuffix("-v3") for name in names)
    hint = did_you_mean(task, short)
    raise ValueError(f"ML-1 has no task {task!r}; {hint}There are {', '.join(short)}")


@lru_cache(maxsize=8)
def _benchmark(name: str, goals_seed: int) -> tuple[type, dict[str, list[Any]]]:
    """The class of a task and its goals; drawing them takes seconds, so lanes share them."""
    benchmark = metaworld.ML1(name, seed=goals_seed)
    goals = {"train": benchmark.train_tasks, "test": benchmark.test_tasks}
    return benchmark.train_classes[name], goals
