"""What perfect play would earn, for domains where that is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from amago.envs.domains.dark_key_to_door import DarkKeyDoor
from amago.envs.settings import EnvSettings
from amago.envs.task_env import TASKS, make_task, task_arguments
from amago.envs.tasks.base import Task
from amago.envs.tasks.goal_task import GoalTask
from amago.envs.tasks.oracle import goal_steps, oracle_return_per_block
from amago.types import Array

NUM_WORLDS = 10_000
NUM_INSTRUCTIONS = 500


def oracle_blocks(settings: EnvSettings, num_blocks: int = 10) -> list[float] | None:
    """Mean return of the oracle in each tenth of the horizon; None where there is no oracle."""
    task = _task(settings)
    if task is None:
        return None
    if "TMaze" in settings.id:
        return [0.0] * (num_blocks - 1) + [1.0]
    if isinstance(task, GoalTask):
        steps = _instructions(task)
        block = (steps[steps <= task.horizon].astype(np.int64) - 1) * num_blocks // task.horizon
        counts: list[float] = (np.bincount(block, minlength=num_blocks) / len(steps)).tolist()
        return counts
    if not isinstance(task, DarkKeyDoor):
        return None
    worlds = np.random.default_rng(0).integers(0, task.grid, (NUM_WORLDS, 3, 2))
    means: list[float] = oracle_return_per_block(task, worlds, num_blocks).mean(0).tolist()
    return means


def oracle_summary(settings: EnvSettings) -> dict[str, float] | None:
    """What `rollout.stats.summarise` would say of the oracle's rollouts, where goals are asked.

    None for domains without instructions: their rollouts always take the whole horizon.
    """
    task = _task(settings)
    if not isinstance(task, GoalTask):
        return None
    steps = _instructions(task)
    last = np.nanmax(steps, axis=1)
    return {
        "return_mean": float((steps <= task.horizon).sum(1).mean()),
        "success_rate": float((last <= task.horizon).mean()),
        "length_mean": float(np.minimum(last, task.horizon).mean()),
    }


def _task(settings: EnvSettings) -> Task | None:
    if settings.ids or settings.id not in TASKS or settings.trials is not None:
        return None
    kwargs: dict[str, Any] = dict(settings.kwargs)
    if settings.horizon is not None:
        if "horizon" not in task_arguments(settings.id):
            return None
        kwargs["horizon"] = settings.horizon
    return make_task(settings.id, **kwargs)


def _instructions(task: GoalTask) -> Array:
    return goal_steps(task, np.arange(NUM_INSTRUCTIONS))
