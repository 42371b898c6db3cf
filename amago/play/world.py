"""One world of an agent's environment: stepped, drawn, changed, and its best and random play."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np

from amago.envs.eyes import first_lane_task, open_eyes
from amago.envs.native import NativeVector
from amago.envs.registry import first_task, make_vector
from amago.envs.settings import EnvSettings
from amago.envs.tasks.base import Eyes, Task
from amago.envs.tasks.goal_task import GoalTask
from amago.play.moves import Move, moves_of
from amago.rollout.random_policy import RandomPolicy
from amago.types import Array, EnvSpec, Timestep

_MAX_STEPS = 4000
"""A rollout is shown up to here; most end earlier."""
_RANDOM_ROLLOUTS = 16
_RANDOM_STEPS = 4000
"""Most steps of random play for its curve."""
RANDOM_SECONDS = 1.0
"""Most time for it in environments that are stepped one lane at a time."""


@dataclass(frozen=True)
class Change:
    """How the world can be changed under the agent."""

    text: str
    apply: Callable[[Any, np.random.Generator], None]
    """Changes lane 0 of a native task."""


def _new_key_and_door(task: Any, rng: np.random.Generator) -> None:
    before = (task.key[0].tolist(), task.door[0].tolist())
    while task.grid > 1 and (task.key[0].tolist(), task.door[0].tolist()) == before:
        task.key[0], task.door[0] = rng.integers(0, task.grid, (2, 2))


def _new_wind(task: Any, rng: np.random.Generator) -> None:
    largest = np.abs(task.wind).max() + 0.02
    task.wind[0] = rng.uniform(-largest, largest, 2)


def _other_side(task: Any, rng: np.random.Generator) -> None:
    task.goal[0] = -task.goal[0]


def _other_road(task: Any, rng: np.random.Generator) -> None:
    forks = task.side[0] > 0
    task.side[0, forks] = 3 - task.side[0, forks]  # left is 1, right is 2
    task.drop[0] = rng.choice([drop for drop in range(4, 8) if drop != task.drop[0]])


_CHANGES = {
    "amago/DarkKeyToDoor-v0": Change("new key and door, same room", _new_key_and_door),
    "amago/Wind-v0": Change("another wind", _new_wind),
    "amago/TMaze-v0": Change("the goal on the other side", _other_side),
    "amago/ActiveTMaze-v0": Change("the goal on the other side", _other_side),
    "amago/PackageDelivery-v0": Change("other sides at forks, another drop", _other_road),
}


class World:
    """The lane of a seed; every `begin` starts the same rollout again."""

    def __init__(self, settings: EnvSettings, seed: int, instruction: str = "") -> None:
        asked = instruction or settings.instruction
        self.settings = replace(first_task(settings), num_workers=0, instruction=asked)
        self.seed = seed
        self.env = make_vector(self.settings, seed=seed, num_lanes=1)
        self.spec: EnvSpec = self.env.spec
        self._eyes: Eyes | None = None
        self.horizon = min(self.spec.horizon or _MAX_STEPS, _MAX_STEPS)
        self.moves: list[Move] = moves_of(self.settings.id, self.spec.action)

    def begin(self) -> Timestep:
        self.env.episodes = np.zeros_like(self.env.episodes)
        row = self.env.reset()
        self._open_eyes()
        return row

    def step(self, action: Array) -> Timestep:
        """The next row; the final one of a rollout is not yet the reset of the next."""
        (rows, _), *_ = self.env.step(action).parts()
        if self._eyes is not None and not rows.last[0]:
            self._eyes.look()
        return rows

    def _open_eyes(self) -> None:
        self._eyes = open_eyes(self.env)
        if self._eyes is not None:
            self._eyes.look()

    @property
    def can_be_dark(self) -> bool:
        """Whether there are pictures without what the agent has not perceived."""
        return self._eyes is not None

    def picture(self, dark: bool = False) -> Array | None:
        """An RGB frame, or None where the environment cannot be drawn here."""
        with contextlib.suppress(Exception):  # no display, no renderer: the rows still tell
            return self.env.render() if not dark or self._eyes is None else self._eyes.frame()
        return None

    @property
    def change(self) -> Change | None:
        """How this world can be changed; None where nobody has said how."""
        return _CHANGES.get(self.settings.id) if self._task() is not None else None

    def apply_change(self, seed: int) -> None:
        change, task = self.change, self._task()
        if change is None:
            raise ValueError(f"{self.spec.name} has no world that can be changed under the agent")
        change.apply(task, np.random.default_rng(seed))
        self._open_eyes()  # what was found may be elsewhere now

    def asked(self, row: Timestep) -> list[tuple[str, bool]]:
        """The goals of the instruction, and whether each is complete."""
        if self.spec.goals is None or row.instruction is None:
            return []
        assert row.num_goals is not None and row.progress is not None
        goals, done = row.instruction[0, : row.num_goals[0]], int(row.progress[0])
        return [(self.spec.goals.write(g[None]), n < done) for n, g in enumerate(goals)]

    def best_rewards(self) -> list[float] | None:
        """What the oracle earns in this very world, step by step; None where nobody knows."""
        self.begin()
        task = copy.deepcopy(self._task())
        if task is None:
            return None
        if isinstance(task, GoalTask):
            rewards = np.zeros(task.horizon)
            steps = task.best_steps(0)
            np.add.at(rewards, steps[steps <= task.horizon] - 1, 1.0)
            return _trimmed(rewards)
        seed = np.array([int(self.begin().world_seed[0])])
        best = task.best_play(seed)
        return None if best is None else _trimmed(best.reward[0])

    def random_returns(self) -> list[float]:
        """The mean return so far of random play in this very world."""
        rollouts = max(2, min(_RANDOM_ROLLOUTS, _RANDOM_STEPS // self.horizon))
        policy = RandomPolicy(self.spec, self.seed)
        if isinstance(self.env, NativeVector):
            rewards = self._random_rewards_together(self.env, rollouts, policy)
        else:
            rewards = self._random_rewards(rollouts, policy)
        return [round(float(value), 3) for value in rewards.cumsum(1).mean(0)]

    def _random_rewards(self, rollouts: int, policy: RandomPolicy) -> Array:
        """Rollout after rollout while there is time [rollouts, steps], zero after their ends."""
        deadline = monotonic() + RANDOM_SECONDS
        played: list[Array] = []
        for _ in range(rollouts):
            row, rewards, late = self.begin(), np.zeros(self.horizon), False
            for time in range(self.horizon):
                row = self.step(policy.act(row, None)[0])
                rewards[time] = row.prev_reward[0]
                late = monotonic() > deadline
                if row.last[0] or late:
                    break
            if late and not row.last[0]:
                # The first rollout is shown as far as it came; a later one is left out.
                return np.stack(played) if played else rewards[None, : time + 1]
            played.append(rewards)
        return np.stack(played)

    def _random_rewards_together(
        self, env: NativeVector, rollouts: int, policy: RandomPolicy
    ) -> Array:
        """The same for many lanes that all begin in this world [rollouts, horizon]."""
        lanes = NativeVector(copy.copy(env.task), rollouts, self.seed)
        seeds = np.full(rollouts, int(self.begin().world_seed[0]))
        row, rewards = lanes.reset(), np.zeros((rollouts, self.horizon))
        lanes.task.reset_lanes(np.arange(rollouts), seeds)
        row = replace(row, obs=lanes.task.observe())
        going = np.ones(rollouts, np.bool_)
        for time in range(self.horizon):
            step = lanes.step(policy.act(row, None)[0])
            for rows, at in step.parts():
                rewards[at, time] += rows.prev_reward * going[at]
                going[at[rows.last]] = False
            row = step.rows
            if not going.any():
                break
        return rewards

    def close(self) -> None:
        self.env.close()

    def _task(self) -> Task | None:
        """The native task behind lane 0, if there is one."""
        return first_lane_task(self.env)


def _trimmed(rewards: Array) -> list[float]:
    return [float(value) for value in rewards[:_MAX_STEPS]]
