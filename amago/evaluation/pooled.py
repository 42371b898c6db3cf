"""Several evaluations as one number with its standard error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

_WINDOW = 3
"""Evaluations before the final test that count, at least; of many the last tenth."""


def pool(rows: Sequence[Mapping[str, Any]], test: Mapping[str, Any]) -> dict[str, Any]:
    """The last evaluations of a run (rows of metrics.jsonl) together with its final test.

    The error is that over rollouts, or that over evaluations where those differ more: they are
    of one agent at several moments.
    """
    known = [row for row in rows if row.get("eval/return_mean") is not None]
    parts: list[dict[str, Any]] = [
        {key: row.get(f"eval/{key}") for key in ("return_mean", "return_std", "success_rate")}
        | {"episodes": row.get("eval/episodes", 1)}
        for row in known[-max(_WINDOW, -(-len(known) // 10)) :]
    ]
    parts.append({key: test[key] for key in (*parts[0], "episodes")} if parts else dict(test))
    episodes = [int(part["episodes"]) for part in parts]
    returns = [(part["return_mean"], part["return_std"] or 0.0) for part in parts]
    mean, error = _pooled(returns, episodes)
    found = {"return_mean": mean, "return_error": error, "success_rate": None}
    if all(part["success_rate"] is not None for part in parts):
        rates = [float(part["success_rate"]) for part in parts]
        spread = [(rate, math.sqrt(rate * (1 - rate))) for rate in rates]
        found["success_rate"], found["success_error"] = _pooled(spread, episodes)
    return {**found, "evaluations": len(parts), "episodes": sum(episodes)}


def _pooled(parts: Sequence[tuple[float, float]], episodes: Sequence[int]) -> tuple[float, float]:
    """Mean and standard error from the mean and deviation of every part; an environment may have
    given rewards without end, which have no error."""
    total = sum(episodes)
    mean = sum(n * m for n, (m, _) in zip(episodes, parts, strict=True)) / total
    if not math.isfinite(mean):
        return mean, math.nan
    square = sum(n * (s**2 + m**2) for n, (m, s) in zip(episodes, parts, strict=True)) / total
    over_rollouts = math.sqrt(max(square - mean**2, 0.0) / total)
    means = [m for m, _ in parts]
    over_parts = stdev(means, fmean(means)) / math.sqrt(len(means)) if len(means) > 1 else 0.0
    return mean, max(over_rollouts, over_parts)
