"""The scores of an arm: of its final window, its best evaluation and its final test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from amago.report.runs import RunRecord
from amago.report.statistics import final_window_mean, maximum
from amago.reproduce.claims.claim import Arm
from amago.rollout.scores import Score


@dataclass(frozen=True)
class _Scores:
    """One number per seed; None where a run has no such number."""

    window: tuple[float | None, ...]
    best: tuple[float | None, ...]
    final: tuple[float | None, ...]


def arm_scores(arm: Arm, metric: Score) -> _Scores:
    """The scores of all seeds."""
    curves = [
        [float(row[metric.evaluation]) for row in run.evaluations if metric.evaluation in row]
        for run in arm.runs
    ]
    return _Scores(
        window=tuple(final_window_mean(curve) if curve else None for curve in curves),
        best=tuple(maximum(curve) if curve else None for curve in curves),
        final=tuple((run.result or {}).get(metric.key) for run in arm.runs),
    )


def reference_score(arms: Sequence[Arm], metric: Score, name: str) -> float | None:
    """What random play or the oracle scores in the worlds of these runs, averaged over them."""
    found = [_reference(run, metric, name) for arm in arms for run in arm.runs]
    return mean(found)


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of what is known."""
    found = known(values)
    return fmean(found) if found else None


def known(values: Iterable[float | None]) -> list[float]:
    """Without those that are not known."""
    return [value for value in values if value is not None]


def _reference(run: RunRecord, metric: Score, name: str) -> float | None:
    result = run.result or {}
    scores = (result.get("reference_scores") or {}).get(name)
    if scores is not None:
        score: float | None = scores[metric.key]
        return score
    tenths = (result.get("references") or {}).get(name)
    # Runs from before reference_scores kept the return per tenth alone.
    return float(sum(tenths)) if tenths and metric.label == "return" else None
