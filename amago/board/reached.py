"""When a run reached its bar: in updates, environment steps and minutes of one core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from amago.board.tasks import BoardTask
from amago.report.runs import RunRecord


@dataclass(frozen=True)
class Reached:
    """What a run had spent when an evaluation was at the bar for the first time."""

    updates: int
    env_steps: int
    minutes: float
    """CPU time of collecting and learning: a busy machine does not lengthen it much."""


def reached(run: RunRecord, task: BoardTask) -> Reached | None:
    """The first evaluation at the bar; None if there is none yet."""
    for row in run.evaluations:
        if task.is_reached(row):
            seconds = sum(
                timing["collect_cpu_seconds"] + timing["learn_cpu_seconds"]
                for timing in run.timing
                if timing["epoch"] <= row["epoch"]
            )
            return Reached(row["updates"], row["env_steps"], seconds / 60)
    return None


def best_score(run: RunRecord, task: BoardTask) -> float | None:
    """The best evaluation so far."""
    scores = [row[task.metric.evaluation] for row in run.evaluations]
    return max(scores, default=None)


def median_minutes(spent: Sequence[Reached | None]) -> float | None:
    """The median over seeds, where a seed that never arrived counts as later than all others."""
    minutes = median([float("inf") if one is None else one.minutes for one in spent])
    return None if minutes == float("inf") else minutes
