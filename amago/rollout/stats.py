"""Returns, lengths and success of finished rollouts, also per tenth of the horizon."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

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


Summary = dict[str, Any]
"""Means over rollouts by name."""


def summarise(records: Iterable[RolloutRecord]) -> Summary:
    """Means over rollouts, and per task under "tasks" where there are several.

    Success and blocks are None where no rollout knows them.
    """
    played = list(records)
    tasks: dict[str, list[RolloutRecord]] = {}
    for record in played:
        tasks.setdefault(record.task, []).append(record)
    if len(tasks) < 2:
        return _means(played)
    return {**_means(played), "tasks": {name: _means(tasks[name]) for name in sorted(tasks)}}


def success_by_length(records: Iterable[RolloutRecord]) -> dict[str, dict[str, float]]:
    """Success and number of rollouts by the number of goals asked for, where that is known."""
    found: dict[int, list[bool]] = {}
    for record in records:
        if record.num_goals is not None and record.success is not None:
            found.setdefault(record.num_goals, []).append(record.success)
    return {
        str(length): {"success_rate": float(np.mean(known)), "episodes": len(known)}
        for length, known in sorted(found.items())
    }


def _means(records: list[RolloutRecord]) -> Summary:
    totals = np.array([record.total for record in records])
    known = [record.success for record in records if record.success is not None]
    blocks = [record.blocks for record in records if record.blocks is not None]
    return {
        "return_mean": float(totals.mean()),
        "return_std": float(totals.std()),
        "success_rate": float(np.mean(known)) if known else None,
        **_per_trial(records),
        "return_per_block": np.mean(blocks, 0).tolist() if blocks else None,
        "length_mean": float(np.mean([record.length for record in records])),
        "episodes": len(records),
    }


def _per_trial(records: list[RolloutRecord]) -> Summary:
    """Trials per rollout, and means of the first trial, the second and so on.

    Where solved trials make room for more, a trial's mean is over all rollouts or none: those
    that only fast rollouts reach are left out, and so is the last one, which the end cuts off.
    """
    counts = {len(record.trials) for record in records}
    if max(counts) < 2:
        return {"trials_mean": None, "return_per_trial": None, "success_per_trial": None}
    alike = min(counts) if len(counts) == 1 else min(counts) - 1
    trials = [record.trials[:alike] for record in records]
    known = alike > 0 and all(trial.success is not None for row in trials for trial in row)
    return {
        "trials_mean": float(np.mean([len(record.trials) for record in records])),
        "return_per_trial": _mean_rows([[t.earned for t in row] for row in trials], alike),
        "success_per_trial": _mean_rows([[t.success for t in row] for row in trials], alike)
        if known
        else None,
    }


def _mean_rows(rows: list[list[Any]], width: int) -> list[float] | None:
    if not width:
        return None
    means: list[float] = np.mean(np.array(rows, np.float64), 0).tolist()
    return means
