"""Algorithm Distillation: a Transformer that predicts the next action of learning histories.

A run of amago's own trainer that only clones, from histories alone [Laskin et al. 2022].
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from amago.baselines.catalogue import described
from amago.baselines.histories import make_histories, source_task, worlds_of
from amago.baselines.settings import HistorySettings
from amago.config import Config
from amago.envs.lanes import world_seed
from amago.seeding import derive
from amago.training.evaluation import final_test_settings
from amago.training.start import create
from amago.types import Array

METHOD = "algorithm-distillation"


def prepare(
    folder: Path,
    config: Config,
    seed: int,
    settings: HistorySettings,
    *,
    preset: str = "",
    overwrite: bool = False,
) -> Mapping[str, Any]:
    """A new run whose replay holds the histories, ready to be resumed; what was made.

    Steps and time of the histories count as the run's own. Worlds of the final test are held out.
    """
    source_task(config.env)  # refuses other domains before a folder is made
    baseline = described(METHOD, settings)
    run = create(folder, config, seed, preset=preset, overwrite=overwrite, baseline=baseline)
    try:
        start = time.perf_counter()
        held_out = worlds_of(run.config.env, _test_seeds(run.config, seed))
        histories = make_histories(run.config.env, settings, derive(seed, "histories"), held_out)
        run.store.append_protected(histories)
        run.env_steps = sum(history.num_steps for history in histories)
        run.seconds = time.perf_counter() - start
        run.save()
    finally:
        run.close()
    earned = np.stack([history.prev_reward[1:] for history in histories])
    tenths = np.array_split(earned, 10, axis=1)
    return {
        "histories": len(histories),
        "env_steps": run.env_steps,
        "return_per_block": [float(part.sum(1).mean()) for part in tenths],
    }


def _test_seeds(config: Config, seed: int) -> Array:
    """The world seeds of the final test."""
    settings = final_test_settings(config, seed)
    lanes = min(settings.num_lanes, settings.episodes)
    seeds = [
        world_seed(settings.world_seed, lane, number)
        for lane in range(lanes)
        for number in range(settings.rollouts_per_lane)
    ]
    return np.array(seeds, np.int64)
