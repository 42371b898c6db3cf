"""The numbers of a run as the rules of the doctor read them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from amago.config import Config

Row = Mapping[str, Any]
_RECENT = 5
"""Rows over which updates are averaged."""
_RECENT_EVALUATIONS = 3
_SOLVED = 0.9
"""Success rate from which a decided policy is no fault."""


_ENOUGH = 30
"""Rollouts from which a standard error says something."""


@dataclass(frozen=True)
class Score:
    """A mean return and its standard error."""

    mean: float
    error: float
    episodes: int = _ENOUGH

    def above(self, other: Score, errors: float = 2.0) -> bool:
        """Whether it is larger by more than chance explains; of a few rollouts, whether it is."""
        few = min(self.episodes, other.episodes) < _ENOUGH
        least = 0.0 if few else errors * math.hypot(self.error, other.error)
        return self.mean - other.mean > least


@dataclass(frozen=True)
class History:
    """All rows of metrics.jsonl so far, the settings, and the final test where there is one."""

    rows: Sequence[Row]
    config: Config
    result: Row | None = None

    @property
    def epoch(self) -> int:
        return int(self.rows[-1].get("epoch", len(self.rows))) if self.rows else 0

    def recent(self, key: str, count: int = _RECENT) -> list[float]:
        """The last values of a metric; fewer than `count` say nothing yet, so none."""
        found = [float(row[key]) for row in self.rows if row.get(key) is not None]
        return found[-count:] if len(found) >= count else []

    def latest(self, key: str) -> float | None:
        """The last value of a metric."""
        found = (row[key] for row in reversed(self.rows) if row.get(key) is not None)
        value = next(found, None)
        return None if value is None else float(value)

    def rows_with(self, key: str) -> list[Row]:
        return [row for row in self.rows if row.get(key) is not None]

    @cached_property
    def evaluations(self) -> list[Row]:
        return self.rows_with("eval/return_mean")

    @cached_property
    def tested(self) -> Score | None:
        """The final test, or the last evaluations together."""
        if self.result is not None:
            return _score(self.result, "")
        rows = self.evaluations[-_RECENT_EVALUATIONS:]
        return pooled(rows, "eval/") if len(rows) == _RECENT_EVALUATIONS else None

    @cached_property
    def random(self) -> Score | None:
        """Random play, in the worlds of the final test or of the first evaluation."""
        if self.result is not None:
            known = (self.result.get("reference_scores") or {}).get("random")
            if known:
                episodes = int(self.result.get("episodes") or 1)
                error = _error(known.get("return_std"), episodes)
                return Score(known["return_mean"], error, episodes)
        rows = self.rows_with("random/return_mean")
        return _score(rows[-1], "random/") if rows else None

    @property
    def success(self) -> float | None:
        """Success of the last test, where it is known."""
        if self.result is not None:
            return self.result.get("success_rate")
        return self.latest("eval/success_rate")

    @property
    def solved(self) -> bool:
        return self.success is not None and self.success >= _SOLVED

    @property
    def not_better_than_random(self) -> bool:
        return (
            self.tested is not None
            and self.random is not None
            and not self.tested.above(self.random)
        )


def _score(row: Row, prefix: str) -> Score:
    """The mean return of one evaluation."""
    episodes = int(row.get(f"{prefix}episodes") or 1)
    error = _error(row.get(f"{prefix}return_std"), episodes)
    return Score(float(row[f"{prefix}return_mean"]), error, episodes)


def pooled(rows: Sequence[Row], prefix: str) -> Score:
    """Several evaluations of as many rollouts each, as one."""
    scores = [_score(row, prefix) for row in rows]
    error = math.sqrt(sum(each.error**2 for each in scores)) / len(scores)
    return Score(fmean(s.mean for s in scores), error, sum(s.episodes for s in scores))


def mean_age(rows: Sequence[Row]) -> float | None:
    """Mean age, in epochs, of the trajectories that the last row's updates were drawn from."""
    added = [(int(row["epoch"]), int(row["replay/added"])) for row in rows if "replay/added" in row]
    if not added:
        return None
    left = size = min(int(rows[-1].get("replay/trajectories") or 0), sum(n for _, n in added))
    total = 0
    for epoch, number in reversed(added):
        counted = min(number, left)
        total += counted * (int(rows[-1]["epoch"]) - epoch)
        left -= counted
    return total / size if size else None


def _error(deviation: float | None, episodes: int) -> float:
    return float(deviation or 0.0) / math.sqrt(max(episodes, 1))
