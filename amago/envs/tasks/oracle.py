"""The best possible play where the world is known: Dark Key-To-Door, and tasks with goals."""

from __future__ import annotations

import numpy as np

from amago.envs.domains.dark_key_to_door import DarkKeyDoor
from amago.envs.tasks.goal_task import GoalTask
from amago.types import Array


def oracle_return_per_block(task: DarkKeyDoor, worlds: Array, num_blocks: int = 10) -> Array:
    """The return of shortest paths in each tenth of the horizon, [M, num_blocks].

    `worlds` [M, 3, 2] comes from `task.worlds(world_seeds)`. Step s of H (from 0) belongs to
    block s * num_blocks // H.
    """
    start, key, door = np.asarray(worlds).swapaxes(0, 1)
    # A key under the start still takes one step, since only steps are paid.
    to_key = np.maximum(np.abs(start - key).sum(axis=1), 1)
    to_door = to_key + np.abs(key - door).sum(axis=1)
    period = np.minimum(to_door, task.trial_limit)[:, None]
    in_trial = np.arange(task.horizon) % period + 1  # [M, H]
    reward = (in_trial == to_key[:, None]) * 1.0 + (in_trial == to_door[:, None])
    blocks = np.arange(task.horizon) * num_blocks // task.horizon
    return np.stack([reward[:, blocks == b].sum(axis=1) for b in range(num_blocks)], axis=1)


def oracle_rate(task: DarkKeyDoor, num_worlds: int = 10_000, seed: int = 0) -> float:
    """The oracle's mean reward per step over many random worlds."""
    worlds = np.random.default_rng(seed).integers(0, task.grid, (num_worlds, 3, 2))
    return float(oracle_return_per_block(task, worlds, 1).mean() / task.horizon)


def goal_steps(task: GoalTask, world_seeds: Array) -> Array:
    """Fewest steps to each goal of each world's own instruction [M, k]; nan in unused slots."""
    task.allocate(len(world_seeds))
    task.reset_lanes(np.arange(len(world_seeds)), world_seeds)
    steps = np.full((len(world_seeds), task.goals.max_goals), np.nan)
    for lane, count in enumerate(task.num_goals):
        steps[lane, :count] = task.best_steps(lane)
    return steps
