"""The scores of finished rollouts: one list of what is computed, logged and shown.

Evaluations, metrics, tables, the report and the live view all read `SCORES`. A new score is one
entry of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from amago.rollout.stats import RolloutRecord, Trial

Records = Sequence[RolloutRecord]
_Summary = dict[str, Any]
"""Scores of some rollouts by name."""


@dataclass(frozen=True)
class Score:
    """One number, or one list of numbers, over rollouts."""

    key: str
    """Its name in metrics.jsonl (after "rollout/" or "eval/") and in result.json."""
    of: Callable[[Records], Any]
    """Computes it; None where it is not known."""
    label: str = ""
    """Its name in tables and in the report; empty: it is not shown there."""
    percent: bool = False
    spread: str | None = None
    """The score that holds its standard deviation over rollouts."""
    live: tuple[str, ...] = ()
    """Parts of the metrics ("rollout", "eval") that the live view shows it of."""
    compared: bool = False
    """Whether runs are compared by it: a claim's metric, a sweep's curve, a tracker's score."""

    @property
    def evaluation(self) -> str:
        """Its name in the evaluations of metrics.jsonl."""
        return f"eval/{self.key}"


def _returns(records: Records) -> Any:
    return np.array([record.total for record in records])


def _success_rate(records: Records) -> float | None:
    known = [record.success for record in records if record.success is not None]
    return float(np.mean(known)) if known else None


def _trials_mean(records: Records) -> float | None:
    counts = [len(record.trials) for record in records]
    return float(np.mean(counts)) if max(counts) > 1 else None


def _return_per_trial(records: Records) -> list[float] | None:
    rows = _trials_of_all(records)
    return _column_means([[trial.earned for trial in row] for row in rows]) if rows else None


def _success_per_trial(records: Records) -> list[float] | None:
    rows = _trials_of_all(records)
    if not rows or any(trial.success is None for row in rows for trial in row):
        return None
    return _column_means([[trial.success for trial in row] for row in rows])


def _return_per_block(records: Records) -> list[float] | None:
    blocks = [record.blocks for record in records if record.blocks is not None]
    return _column_means(blocks) if blocks else None


SCORES = (
    Score(
        "return_mean",
        lambda records: float(_returns(records).mean()),
        "return",
        spread="return_std",
        live=("rollout", "eval"),
        compared=True,
    ),
    Score("return_std", lambda records: float(_returns(records).std())),
    Score("success_rate", _success_rate, "success", True, live=("rollout",), compared=True),
    Score("trials_mean", _trials_mean, "trials"),
    Score("return_per_trial", _return_per_trial),
    Score("success_per_trial", _success_per_trial),
    Score("return_per_block", _return_per_block),
    Score(
        "length_mean",
        lambda records: float(np.mean([record.length for record in records])),
        "steps",
    ),
    Score("episodes", len),
)
SHOWN = tuple(score for score in SCORES if score.label)
"""What tables and the report show, in this order."""
COMPARED = {score.label: score for score in SCORES if score.compared}
"""What runs are compared by."""


def summarise(records: Iterable[RolloutRecord]) -> _Summary:
    """All scores, and per task under "tasks" where there are several."""
    played = list(records)
    tasks: dict[str, list[RolloutRecord]] = {}
    for record in played:
        tasks.setdefault(record.task, []).append(record)
    if len(tasks) < 2:
        return _all_scores(played)
    by_task = {name: _all_scores(tasks[name]) for name in sorted(tasks)}
    return {**_all_scores(played), "tasks": by_task}


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


def _all_scores(records: Records) -> _Summary:
    return {score.key: score.of(records) for score in SCORES}


def _trials_of_all(records: Records) -> list[tuple[Trial, ...]]:
    """The trials that every rollout has played to the end; none where there is only one.

    Where solved trials make room for more, those that only fast rollouts reach are left out, and
    so is the last one, which the end cuts off.
    """
    counts = {len(record.trials) for record in records}
    alike = min(counts) if len(counts) == 1 else min(counts) - 1
    if max(counts) < 2 or alike < 1:
        return []
    return [record.trials[:alike] for record in records]


def _column_means(rows: Sequence[Any]) -> list[float]:
    means: list[float] = np.mean(np.array(rows, np.float64), 0).tolist()
    return means
