"""The critics' error against their TD targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amago.agent.terms.term import Term
from amago.checks import at_least

if TYPE_CHECKING:
    from torch import Tensor

    from amago.agent.transitions import Transitions


@dataclass(frozen=True)
class CriticSettings:
    weight: float = 10.0
    """Weight of the critic loss."""

    def __post_init__(self) -> None:
        at_least(0, self, "terms.critic", "weight")


class CriticTerm(Term):
    """Mean error of the ensemble, on the scale that the values have themselves [AMAGO eq. 2]."""

    name = "critic"

    def __init__(self, settings: CriticSettings) -> None:
        self.weight = settings.weight

    def loss(self, transitions: Transitions) -> Tensor:
        return transitions.taken.loss(transitions.target).mean(0)

    def metrics(self, transitions: Transitions) -> dict[str, Tensor]:
        agent, taken = transitions.agent, transitions.taken
        acting = agent.acting_index
        gamma = f"{agent.acting_discount:g}"
        mean, std = agent.popart.statistics()
        deviation = taken.normalised - taken.normalised.mean(0)
        return {
            f"value/q@{gamma}": taken.raw[..., acting].mean(),
            f"value/target@{gamma}": transitions.target[:, acting].mean(),
            "value/spread": deviation.square().mean(0).sqrt().mean(),
            "popart/mean": mean[acting],
            "popart/std": std[acting],
        }
