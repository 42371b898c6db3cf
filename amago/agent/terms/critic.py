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
        names = [f"value/q@{gamma:g}" for gamma in agent.discount_values]
        means = dict(zip(names, taken.raw.mean((0, 1)).unbind(), strict=True))
        mean, std = agent.popart.statistics()
        deviation = taken.normalised - taken.normalised.mean(0)
        return {
            names[acting]: means[names[acting]],  # first, for those who look for one
            **means,
            f"value/target@{agent.acting_discount:g}": transitions.target[:, acting].mean(),
            "value/spread": deviation.square().mean(0).sqrt().mean(),
            "popart/mean": mean[acting],
            "popart/std": std[acting],
        }
