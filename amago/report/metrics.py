"""The scores that runs are compared by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """A score: its name, and where evaluations, results and references keep it."""

    name: str
    evaluation: str
    result: str
    percent: bool


METRICS = {
    "return": Metric("return", "eval/return_mean", "return_mean", percent=False),
    "success": Metric("success", "eval/success_rate", "success_rate", percent=True),
}
