"""One record per finished rollout: return, length, success, trials, return per tenth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from amago.types import Array, Step, Timestep, VectorEnv

NUM_BLOCKS = 10


class Trial(NamedTuple):
    """One trial of a rollout."""

    end: int
    """Steps of the rollout when it ended."""
    earned: float
    success: bool | None


@dataclass(frozen=True)
class RolloutRecord:
    """One finished rollout in numbers."""

    task: str
    lane: int
    total: float
    """Undiscounted return."""
    length: int
    success: bool | None
    blocks: Array | None
    """Return earned in each tenth of the horizon; None without a known horizon."""
    world_seed: int
    """The seed of the world that was played."""
    trials: tuple[Trial, ...] = ()
    """Its trials in order; the last one may have been cut off by the end of the rollout."""
    num_goals: int | None = None
    """Goals of its instruction."""


class RolloutTracker:
    """Adds up the rewards of every lane; knows nothing of policies or storage."""

    def __init__(self, env: VectorEnv) -> None:
        self.tasks, self.horizon = env.tasks, env.spec.horizon
        self._totals = np.zeros((env.num_lanes, NUM_BLOCKS))
        self._trials: list[list[Trial]] = [[] for _ in range(env.num_lanes)]

    def add(self, step: Step) -> list[RolloutRecord]:
        """Take one round trip's rows; return the rollouts that it ended."""
        finished: list[RolloutRecord] = []
        for rows, lanes in step.parts():
            self._earn(rows, lanes)
            ended = np.flatnonzero(rows.last)
            finished += [self._finish(rows, int(row), int(lanes[row])) for row in ended]
        return finished

    def _earn(self, rows: Timestep, lanes: Array) -> None:
        self._totals[lanes[rows.time == 0]] = 0.0
        # The reward in row t was earned by step t-1.
        span = self.horizon or 1
        block = np.clip((rows.time - 1) * NUM_BLOCKS // span, 0, NUM_BLOCKS - 1)
        self._totals[lanes, block] += np.where(rows.time > 0, rows.prev_reward, 0.0)
        for row in np.flatnonzero((rows.time == 0) | rows.first | rows.last):
            self._end_trial(rows, int(row), int(lanes[row]))

    def _end_trial(self, rows: Timestep, row: int, lane: int) -> None:
        """A trial ends before the first row of the next, and with the rollout."""
        trials = self._trials[lane]
        if rows.time[row] == 0:
            trials.clear()
            return
        earned = float(self._totals[lane].sum()) - sum(trial.earned for trial in trials)
        success = None if rows.success is None else bool(rows.success[row])
        trials.append(Trial(int(rows.time[row]), earned, success))

    def _finish(self, rows: Timestep, row: int, lane: int) -> RolloutRecord:
        blocks = self._totals[lane].copy()
        return RolloutRecord(
            task=self.tasks[lane],
            lane=lane,
            total=float(blocks.sum()),
            length=int(rows.time[row]),
            success=None if rows.success is None else bool(rows.success[row]),
            blocks=None if self.horizon is None else blocks,
            world_seed=int(rows.world_seed[row]),
            trials=tuple(self._trials[lane]),
            num_goals=None if rows.num_goals is None else int(rows.num_goals[row]),
        )
