"""Lanes that other processes play: their description and counters, without their environments."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import NoReturn

import numpy as np

from amago.envs.joint import share_out
from amago.envs.lanes import checked_episodes, furthest, read_only
from amago.envs.registry import MakeEnv, make_vector
from amago.envs.settings import EnvSettings
from amago.types import Array, Curriculum, VectorEnv


class LanesElsewhere:
    """What a vector of N lanes says of itself; whoever plays them reports the counters back."""

    def __init__(
        self, settings: EnvSettings, *, seed: int, num_lanes: int, make_env: MakeEnv | None = None
    ) -> None:
        """Makes one lane of each task, looks at it and closes it again."""
        self.num_lanes = num_lanes
        self.tasks: tuple[str, ...] = ()
        self.horizons: tuple[int | None, ...] = ()
        curricula = []
        settings = replace(settings, num_workers=0)
        num_tasks = 1 if make_env is not None else max(1, len(settings.ids))
        for block in share_out(num_tasks, num_lanes):
            first = range(block.start, block.start + 1)
            probe: VectorEnv = make_vector(
                settings, seed=seed, num_lanes=num_lanes, make_env=make_env, lanes=first
            )
            with contextlib.closing(probe):
                self.spec = probe.spec
                self.tasks += probe.tasks * len(block)
                self.horizons += probe.horizons * len(block)
                curricula.append(probe.curriculum)
        self.curriculum: Curriculum = furthest(curricula)
        self._episodes = np.zeros(num_lanes, np.int64)

    @property
    def episodes(self) -> Array:
        """Rollouts begun per lane [N], read-only; assign a whole array."""
        return read_only(self._episodes)

    @episodes.setter
    def episodes(self, episodes: Array) -> None:
        self._episodes = checked_episodes(episodes, self.num_lanes)

    @property
    def restarts(self) -> int:
        """None here: where the lanes are played, each is said in a warning."""
        return 0

    def reset(self) -> NoReturn:
        raise AssertionError("these lanes are played by other processes")

    def step(self, action: Array, idle: Array | None = None) -> NoReturn:
        raise AssertionError("these lanes are played by other processes")

    def render(self) -> NoReturn:
        raise AssertionError("these lanes are played by other processes")

    def close(self) -> None:
        """There is nothing to close."""
