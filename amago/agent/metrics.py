"""Averages of what updates log (docs/metrics.md explains each number)."""

from __future__ import annotations

from torch import Tensor


class MetricMean:
    """Averages of the updates of one epoch."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}

    def add(self, metrics: dict[str, Tensor]) -> None:
        for name, value in metrics.items():
            value = value.detach().double()
            self._sums[name] = self._sums[name] + value if name in self._sums else value
            self._counts[name] = self._counts.get(name, 0) + 1

    def read(self) -> dict[str, float]:
        return {name: float(total) / self._counts[name] for name, total in self._sums.items()}
