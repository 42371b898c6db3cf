"""Numbers that describe one update (docs/metrics.md explains each)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from amago.agent.agent import Agent
from amago.nets.distributions import ActionDistribution
from amago.nets.value import Value


@torch.no_grad()
def describe(
    agent: Agent,
    losses: dict[str, Tensor],
    total: Tensor,
    policy: ActionDistribution,
    taken: Value,
    target: Float[Tensor, "M G"],
    weight: Float[Tensor, "M G"],
) -> dict[str, Tensor]:
    acting = agent.acting_index
    gamma = f"{float(agent.discounts[acting]):g}"
    mean, std = agent.popart.statistics()
    deviation = taken.normalised - taken.normalised.mean(0)
    return {
        **{f"loss/{name}": value.detach() for name, value in losses.items()},
        "loss/total": total.detach(),
        f"value/q@{gamma}": taken.raw[..., acting].mean(),
        f"value/target@{gamma}": target[:, acting].mean(),
        "value/spread": deviation.square().mean(0).sqrt().mean(),
        "popart/mean": mean[acting],
        "popart/std": std[acting],
        "policy/entropy": policy.entropy()[:, acting].mean(),
        "policy/bc_accepted": (weight > 0).to(weight.dtype).mean(),
    }


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
