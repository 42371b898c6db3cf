"""What perfect play would earn, for domains where that is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from amago.envs.catalogue import TASKS, make_task, task_arguments
from amago.envs.settings import EnvSettings
from amago.envs.tasks.base import BestPlay, Task
from amago.envs.tasks.goal_task import GoalTask

NUM_WORLDS = 500


def oracle_blocks(settings: EnvSettings, num_blocks: int = 10) -> list[float] | None:
    """Mean return of the oracle in each tenth of the horizon; None where there is no oracle."""
    task = _task(settings)
    best = None if task is None else _best_play(task)
    if best is None:
        return None
    horizon = best.reward.shape[1]
    block = np.arange(horizon) * num_blocks // horizon
    return [float(best.reward[:, block == n].sum(1).mean()) for n in range(num_blocks)]


def oracle_summary(settings: EnvSettings) -> dict[str, float] | None:
    """What `rollout.stats.summarise` would say of the oracle's rollouts, where goals are asked.

    None for domains without instructions: their rollouts always take the whole horizon.
    """
    task = _task(settings)
    if not isinstance(task, GoalTask):
        return None
    best = _best_play(task)
    assert best is not None
    return {
        "return_mean": float(best.reward.sum(1).mean()),
        "success_rate": float(best.success.mean()),
        "length_mean": float(best.length.mean()),
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


def _best_play(task: Task) -> BestPlay | None:
    return task.best_play(np.arange(NUM_WORLDS))
