"""Averages of what updates log (docs/metrics.md explains each number)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from amago.nets.distributions import LOG_STD_RANGE
from amago.types import ActionSpec


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


def entropy_share(entropy: Tensor, action: ActionSpec, mask: Tensor | None = None) -> Tensor:
    """Mean entropy [M] of a policy, from 0 (decided) to 1 (as undecided as it can be).

    A continuous policy's deviation has bounds; between them the share is that of its logarithm.
    """
    if action.kind == "continuous":
        low, high = LOG_STD_RANGE
        log_std = entropy.mean() / action.size - 0.5 * math.log(2 * math.pi * math.e)
        return (log_std - low) / (high - low)
    if action.kind == "discrete" and mask is not None:
        # Row by row, so that parts of a batch add up; a mask without an action masks nothing.
        allowed = mask.sum(-1)
        choices = torch.where(allowed == 0, action.size, allowed).to(entropy.dtype)
        return (entropy / choices.log().clamp(min=math.log(2))).mean()
    sizes = action.sizes or (2,) * action.size if action.kind != "discrete" else (action.size,)
    return entropy.mean() / max(sum(map(math.log, sizes)), 1e-9)
