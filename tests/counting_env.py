"""Environments whose observation is (lane, episode, step), and what they must produce."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np

from amago.envs.lanes import world_seed
from amago.envs.tasks.base import Outcome, Task
from amago.types import Array, Step, Timestep

NUM_ACTIONS = 5
OBS_SPACE = gym.spaces.Box(-1.0, 1e6, (3,), np.float64)


@cache
def places(seed: int) -> dict[int, tuple[int, int]]:
    """World seed → (lane, episode), so that an environment knows where it is from its seed."""
    return {world_seed(seed, lane, n): (lane, n) for lane in range(8) for n in range(60)}


def length(lane: int, episode: int) -> int:
    return 1 + (3 * lane + 5 * episode) % 7


def ending(lane: int, episode: int) -> tuple[bool, bool]:
    """(terminated, truncated) of the last step: each alone, and both."""
    return ((True, False), (False, True), (True, True))[(lane + 2 * episode) % 3]


def reward(lane: int, episode: int, step: int, action: int) -> float:
    return 1000.0 * lane + 100.0 * episode + 10.0 * step + action


def is_soft_reset(episode: int, step: int) -> bool:
    return episode % 2 == 1 and step == 3


class CountingEnv(gym.Env[Array, Any]):
    """Knows lane and episode from its world's seed; a reset without one is the next episode."""

    def __init__(self, seed: int = 0) -> None:
        self.observation_space = OBS_SPACE
        self.action_space = gym.spaces.Discrete(NUM_ACTIONS, start=3)
        self.place, self.step_count = (-1, -1), 0
        self._seed = seed
        # One buffer for all observations: whoever keeps a reference reads the future.
        self._buffer = np.zeros(3)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        if seed in places(self._seed):
            self.place = places(self._seed)[seed]
        else:
            self.place = (self.place[0], self.place[1] + 1)
        self.step_count = 0
        return self._observe(), {"first": True}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.step_count += 1
        over = self.step_count == length(*self.place)
        terminated, truncated = ending(*self.place) if over else (False, False)
        value = reward(*self.place, self.step_count, int(action) - 3)
        info: dict[str, Any] = {"first": is_soft_reset(self.place[1], self.step_count) and not over}
        if over:
            info["is_success"] = terminated
        return self._observe(), value, terminated, truncated, info

    def _observe(self) -> Array:
        self._buffer[:] = (*self.place, self.step_count)
        return self._buffer


class CountingTask(Task):
    """The same worlds, natively batched; every end is a termination."""

    def __init__(self, seed: int = 0) -> None:
        self.observation_space = gym.spaces.Box(-1.0, 1e6, (3,), np.float32)
        self.action_space = gym.spaces.Discrete(NUM_ACTIONS)
        self.horizon = 7
        self._seed = seed

    def allocate(self, num_lanes: int) -> None:
        super().allocate(num_lanes)
        self.place = np.zeros((num_lanes, 2), np.int64)

    def reset_lanes(self, lanes: Array, world_seeds: Array) -> None:
        self.place[lanes] = [places(self._seed)[int(seed)] for seed in world_seeds]
        self.time[lanes] = 0

    def observe(self) -> dict[str, Array]:
        return {"observation": np.column_stack([self.place, self.time]).astype(np.float32)}

    def step(self, action: Array) -> Outcome:
        self.time += 1
        lane, episode = self.place.T
        over = self.time == 1 + (3 * lane + 5 * episode) % 7
        first = (episode % 2 == 1) & (self.time == 3) & ~over
        value = 1000.0 * lane + 100.0 * episode + 10.0 * self.time + action
        return value.astype(np.float32), over, first, over

    def render(self, lane: int) -> Array:
        return np.zeros((200, 200, 3), np.uint8)


@dataclass(frozen=True)
class Row:
    """One row of one lane in plain numbers, which compare exactly."""

    obs: tuple[float, ...]
    action: int | None
    reward: float
    time: int
    first: bool
    terminal: bool
    last: bool
    world_seed: int


def expected_rows(
    seed: int,
    lane: int,
    actions: Array,
    *,
    first_episode: int = 0,
    always_terminates: bool = False,
    skips_an_action: bool = False,
    seeded_once: bool = False,
) -> list[Row]:
    """A slow simulation of one lane [calls]: what its stream of rows must be."""
    episode, step = first_episode, 0

    def seed_now() -> int:
        return world_seed(seed, lane, first_episode if seeded_once else episode)

    def reset_row() -> Row:
        return Row((lane, episode, 0), None, 0.0, 0, True, False, False, seed_now())

    rows, ended = [reset_row()], False
    for action in actions.tolist():
        if ended and skips_an_action:
            episode, step, ended = episode + 1, 0, False
            rows.append(reset_row())
            continue
        step += 1
        ended = step == length(lane, episode)
        terminal = ended and (always_terminates or ending(lane, episode)[0])
        first = is_soft_reset(episode, step) and not ended
        value = reward(lane, episode, step, action)
        obs = (lane, episode, step)
        rows.append(Row(obs, action, value, step, first, terminal, ended, seed_now()))
        if ended and not skips_an_action:
            episode, step = episode + 1, 0
            rows.append(reset_row())
    return rows


def rows_of(timestep: Timestep) -> list[Row]:
    return [
        Row(
            tuple(timestep.obs["observation"][i].tolist()),
            int(timestep.prev_action[i]) if timestep.time[i] else None,
            float(timestep.prev_reward[i]),
            int(timestep.time[i]),
            bool(timestep.first[i]),
            bool(timestep.terminal[i]),
            bool(timestep.last[i]),
            int(timestep.world_seed[i]),
        )
        for i in range(len(timestep))
    ]


def streams(vector: Any, actions: Array) -> tuple[list[list[Row]], list[Step]]:
    """Everything that a vector emits per lane under a script of actions [calls, N]."""
    lanes = [[row] for row in rows_of(vector.reset())]
    steps = [vector.step(row) for row in actions]
    for step in steps:
        for rows, places in step.parts():
            for lane, row in zip(places, rows_of(rows), strict=True):
                lanes[lane].append(row)
    return lanes, steps
