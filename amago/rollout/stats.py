"""Returns, lengths and success of finished rollouts, also per tenth of the horizon."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from amago.types import Array, Step, Timestep, VectorEnv

NUM_BLOCKS = 10


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
    trials: tuple[tuple[int, bool], ...] = ()
    """When each trial ended, and whether it was a success; empty where success is not known."""


class RolloutTracker:
    """Adds up the rewards of every lane; knows nothing of policies or storage."""

    def __init__(self, env: VectorEnv) -> None:
        self.tasks, self.horizon = env.tasks, env.spec.horizon
        self._totals = np.zeros((env.num_lanes, NUM_BLOCKS))
        self._trials: list[list[tuple[int, bool]]] = [[] for _ in range(env.num_lanes)]

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
        if rows.success is None:
            return
        for row in np.flatnonzero((rows.time == 0) | rows.first | rows.last):
            trials = self._trials[lanes[row]]
            if rows.time[row] == 0:
                trials.clear()
            else:
                trials.append((int(rows.time[row]), bool(rows.success[row])))

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


def _means(records: list[RolloutRecord]) -> Summary:
    totals = np.array([record.total for record in records])
    known = [record.success for record in records if record.success is not None]
    blocks = [record.blocks for record in records if record.blocks is not None]
    return {
        "return_mean": float(totals.mean()),
        "return_std": float(totals.std()),
        "success_rate": float(np.mean(known)) if known else None,
        "success_per_trial": _success_per_trial(records),
        "return_per_block": np.mean(blocks, 0).tolist() if blocks else None,
        "length_mean": float(np.mean([record.length for record in records])),
        "episodes": len(records),
    }


def _success_per_trial(records: list[RolloutRecord]) -> list[float] | None:
    """Success rate of the first trial, the second and so on; None unless all ended alike.

    Where solved trials make room for more, the index of a trial says nothing.
    """
    ends = {tuple(time for time, _ in record.trials) for record in records}
    if len(ends) != 1 or len(next(iter(ends))) < 2:
        return None
    successes = [[success for _, success in record.trials] for record in records]
    rates: list[float] = np.mean(successes, 0).tolist()
    return rates
