"""Which goals of a rollout relabeling may ask for in hindsight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from amago import ragged
from amago.replay.rarity import keys_of
from amago.types import Array, Trajectory


class Candidates(NamedTuple):
    """Goals that may be chosen, in the order of their rows."""

    rows: Array  # [m]
    goals: Array  # [m, goal size]
    keys: Array  # [m], equal exactly where goals are


def candidates(trajectory: Trajectory, *, repeats: bool) -> Candidates:
    """Goals newly achieved by steps that completed nothing that was asked for.

    Unless instructions repeat goals, one that was completed is not asked for again.
    """
    assert trajectory.achieved is not None and trajectory.progress is not None
    assert trajectory.instruction is not None
    goals = trajectory.achieved[1]
    rows, keys = ragged.rows_of(trajectory.achieved), keys_of(goals)
    free = np.zeros(len(trajectory.progress), np.bool_)
    free[1:] = trajectory.progress[1:] == trajectory.progress[:-1]
    kept = free[rows] & _newly_achieved(rows, keys)
    if not repeats:
        for completed in trajectory.instruction[: trajectory.progress[-1]]:
            kept &= (goals != completed).any(axis=1)
    return Candidates(rows[kept], goals[kept], keys[kept])


def _newly_achieved(rows: Array, keys: Array) -> Array:
    """Whether each goal was not achieved at the row before, too: staying achieves nothing new."""
    different, number = np.unique(keys, return_inverse=True)
    # held[r + 1, g]: row r achieved goal g.
    held = np.zeros((int(rows.max(initial=0)) + 2, len(different)), np.bool_)
    held[rows + 1, number] = True
    new: Array = ~held[rows, number]
    return new


def completed_rows(trajectory: Trajectory) -> Array:
    """The row at which each completed goal was completed."""
    assert trajectory.progress is not None
    rows: Array = 1 + (trajectory.progress[1:] > trajectory.progress[:-1]).nonzero()[0]
    return rows
