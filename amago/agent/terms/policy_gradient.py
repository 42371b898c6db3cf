"""The policy gradient: the actor climbs the critics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amago.agent.terms.term import Term
from amago.checks import at_least

if TYPE_CHECKING:
    from torch import Tensor

    from amago.agent.transitions import Transitions


@dataclass(frozen=True)
class ActorSettings:
    weight: float = 1.0
    """Weight of the policy-gradient loss."""

    def __post_init__(self) -> None:
        at_least(0, self, "terms.actor", "weight")


class ActorTerm(Term):
    """-(normalised Q(s, π(s))), the least of all critics [AMAGO eq. 1]."""

    name = "actor"

    def __init__(self, settings: ActorSettings) -> None:
        self.weight = settings.weight

    def loss(self, transitions: Transitions) -> Tensor:
        return -transitions.expected.normalised.amin(0)

    def metrics(self, transitions: Transitions) -> dict[str, Tensor]:
        from amago.agent.agent import action_mask
        from amago.agent.metrics import entropy_share

        agent = transitions.agent
        entropy = transitions.policy.entropy()[:, agent.acting_index]
        share = entropy_share(entropy, agent.spec.action, action_mask(transitions.obs))
        return {"policy/entropy": entropy.mean(), "policy/entropy_share": share}
