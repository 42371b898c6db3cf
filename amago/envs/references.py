"""What perfect play would earn, for domains where that is known."""

from __future__ import annotations

import numpy as np

from amago.envs.settings import EnvSettings
from amago.envs.tasks.dark_key_door import DarkKeyDoor
from amago.envs.tasks.oracle import oracle_return_per_block
from amago.envs.tasks.single import TASKS, make_task

NUM_WORLDS = 10_000


def oracle_blocks(settings: EnvSettings, num_blocks: int = 10) -> list[float] | None:
    """Mean return of the oracle in each tenth of the horizon; None where there is no oracle."""
    if settings.ids or settings.id not in TASKS or settings.trials is not None:
        return None
    kwargs = dict(settings.kwargs)
    if settings.horizon is not None:
        kwargs["horizon"] = settings.horizon
    if "TMaze" in settings.id:
        return [0.0] * (num_blocks - 1) + [1.0]
    if settings.id != "amago/DarkKeyToDoor-v0":
        return None
    task = make_task(settings.id, **kwargs)
    assert isinstance(task, DarkKeyDoor)
    worlds = np.random.default_rng(0).integers(0, task.grid, (NUM_WORLDS, 3, 2))
    means: list[float] = oracle_return_per_block(task, worlds, num_blocks).mean(0).tolist()
    return means
