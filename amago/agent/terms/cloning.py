"""Filtered behaviour cloning: imitate the replay's actions that are worth it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from amago.agent.terms.term import Term
from amago.checks import at_least

if TYPE_CHECKING:
    from torch import Tensor

    from amago.agent.transitions import Transitions

_MAX_WEIGHT = 20.0
"""The exponential filter never weighs an action more than this."""


@dataclass(frozen=True)
class CloningSettings:
    weight: float = 0.1
    """Weight of the filtered behaviour-cloning loss."""
    filter: Literal["binary", "exponential", "none"] = "binary"
    """Which actions are cloned: those of positive advantage, all by exp(advantage), or all."""

    def __post_init__(self) -> None:
        at_least(0, self, "terms.cloning", "weight")


class CloningTerm(Term):
    """-f(s, a)·log π(a|s), f the filter, through which no gradient flows [AMAGO eq. 6]."""

    name = "cloning"

    def __init__(self, settings: CloningSettings) -> None:
        self.weight, self.settings = settings.weight, settings

    def loss(self, transitions: Transitions) -> Tensor:
        log_prob = transitions.policy.log_prob(transitions.action[:, None])
        return -self._filter(transitions) * log_prob

    def metrics(self, transitions: Transitions) -> dict[str, Tensor]:
        accepted = self._filter(transitions) > 0
        return {"cloning/accepted": accepted.to(transitions.target.dtype).mean()}

    def _filter(self, transitions: Transitions) -> Tensor:
        return _FILTERS[self.settings.filter](transitions.advantage)


def binary_filter(advantage: Tensor) -> Tensor:
    """1 where the action was better than the policy's average [AMAGO eq. 5]."""
    return (advantage > 0).to(advantage.dtype)


def _exponential_filter(advantage: Tensor) -> Tensor:
    """exp(advantage) on the normalised scale [CRR]."""
    return advantage.exp().clamp(max=_MAX_WEIGHT)


def _no_filter(advantage: Tensor) -> Tensor:
    """1 everywhere: behaviour cloning of all that happened [GCSL]."""
    return advantage.new_ones(advantage.shape)


_FILTERS = {"binary": binary_filter, "exponential": _exponential_filter, "none": _no_filter}
