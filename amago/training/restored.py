"""The counters of a run that is taken up again."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from amago.training.run import TrainingRun

_LOG = logging.getLogger("amago")


def keeps_later(mode: str, state: dict[str, Any]) -> bool:
    """Whether trajectories that were stored after a checkpoint stay: where either the run that
    stored them or the one that goes on collects while it learns."""
    return bool(state) and (mode == "async" or state.get("collected") is not None)


def restore_counters(run: TrainingRun, state: dict[str, Any]) -> None:
    """What a checkpoint says of a run, and what has come into its replay since."""
    run.epoch, run.env_steps, run.seconds = state["epoch"], state["env_steps"], state["seconds"]
    run.learner.updates, run.learner.skipped = state["updates"], state["skipped"]
    run.exploration.steps = state["exploration_steps"]
    run.env.episodes = np.array(state["episodes"])
    run.env.curriculum = state["curriculum"]
    if run.config.scale.mode == "async":
        run.collected = state.get("collected")
    run.saved_epoch, run.best_epoch = state["epoch"], state["best_epoch"]
    run.best_return = -math.inf if state["best_return"] is None else state["best_return"]
    _count_later(run, state["window"][1])


def _count_later(run: TrainingRun, known: int) -> None:
    """Count trajectories from the id `known` on, which the checkpoint has not."""
    low, high = run.store.window
    steps = sum(run.store.lengths[number] for number in range(max(known, low), high))
    if not steps:
        return
    if run.config.scale.mode == "async":
        lanes = run.env.num_lanes
        epochs = max(run.epoch - run.config.rollout.offline_epochs, 0)
        per_lane = max(run.steps_per_epoch, run.env_steps / max(epochs, 1) / lanes)
        done = epochs * lanes if run.collected is None else run.collected
        run.collected = done + round(steps / per_lane)
    run.env_steps += steps
    # The worlds that were played are not played again.
    run.env.episodes = run.env.episodes + (high - known)
    _LOG.warning(f"{high - known} trajectories that were stored after the checkpoint are kept")
