"""One world of an agent's environment: stepped, drawn, changed, and its best and random play."""

from __future__ import annotations

import contextlib
import copy
from dataclasses import replace
from time import monotonic

import numpy as np

from amago.envs.changes import Change, change_of, subject_of, why_not
from amago.envs.domains.dark_key_to_door import DarkKeyToDoor
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
        return None if subject_of(self.env) is None else change_of(self.settings.id)

    @property
    def why_not(self) -> str:
        """Why it cannot be changed."""
        return why_not(self.settings.id)

    def apply_change(self, seed: int) -> None:
        change = self.change
        if change is None:
            raise ValueError(f"{self.spec.name} cannot be changed under the agent: {self.why_not}")
        change.apply(subject_of(self.env), np.random.default_rng(seed))
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
        known = self.best_from_here()
        if known is not None or self._task() is None:
            return known
        seed = np.array([int(self.begin().world_seed[0])])
        task = copy.deepcopy(self._task())
        best = None if task is None else task.best_play(seed)
        return None if best is None else _trimmed(best.reward[0])

    def best_from_here(self) -> list[float] | None:
        """What the oracle would earn if the world as it is now were entered at its start."""
        task = self._task()
        if isinstance(task, GoalTask):
            rewards = np.zeros(task.horizon)
            steps = task.best_steps(0)
            np.add.at(rewards, steps[steps <= task.horizon] - 1, 1.0)
            return _trimmed(rewards)
        if isinstance(task, DarkKeyToDoor):
            world = np.stack([task.start[0], task.key[0], task.door[0]])
            return _trimmed(task.best_in(world[None]).reward[0])
        return None

    def random_returns(self) -> list[float]:
        """The mean return so far of random play in this very world."""
        self.begin()
        from_here = self.random_from_here()
        return _sums(self._random_rewards()) if from_here is None else from_here

    def random_from_here(self) -> list[float] | None:
        """The same, but beginning where the world is now; None where that cannot be copied."""
        if not isinstance(self.env, NativeVector):
            return None
        return _sums(self._random_rewards_together(self.env))

    def _random_rewards(self) -> Array:
        """Rollout after rollout while there is time [rollouts, steps], zero after their ends."""
        deadline = monotonic() + RANDOM_SECONDS
        policy, rollouts = RandomPolicy(self.spec, self.seed), self._num_random
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

    def _random_rewards_together(self, env: NativeVector) -> Array:
        """The same for many lanes that all begin where lane 0 is now [rollouts, horizon]."""
        policy, rollouts = RandomPolicy(self.spec, self.seed), self._num_random
        lanes = NativeVector(copy.copy(env.task), rollouts, self.seed)
        row, rewards = lanes.reset(), np.zeros((rollouts, self.horizon))
        _copy_lane(env.task, lanes.task)
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

    @property
    def _num_random(self) -> int:
        return max(2, min(_RANDOM_ROLLOUTS, _RANDOM_STEPS // self.horizon))

    def close(self) -> None:
        self.env.close()

    def _task(self) -> Task | None:
        """The native task behind lane 0, if there is one."""
        return first_lane_task(self.env)


def _copy_lane(one: Task, many: Task) -> None:
    """Let all lanes of a task be where the only lane of another one is."""
    for name, value in vars(one).items():
        room = getattr(many, name)
        per_lane = isinstance(value, np.ndarray) and name != "_lanes"
        if per_lane and room.shape == (many.num_lanes, *value.shape[1:]) and len(value) == 1:
            room[:] = value


def _sums(rewards: Array) -> list[float]:
    return [round(float(value), 3) for value in rewards.cumsum(1).mean(0)]


def _trimmed(rewards: Array) -> list[float]:
    return [float(value) for value in rewards[:_MAX_STEPS]]
