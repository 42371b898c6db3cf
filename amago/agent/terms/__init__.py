"""Loss terms: one file each, with its settings, its weight, its loss and what it logs.

Nothing here imports torch when it is imported, so that settings can be composed without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from amago.agent.terms.cloning import CloningSettings, CloningTerm
from amago.agent.terms.critic import CriticSettings, CriticTerm
from amago.agent.terms.policy_gradient import ActorSettings, ActorTerm
from amago.agent.terms.term import Term
from amago.agent.terms.world_model import WorldModelSettings, WorldModelTerm

__all__ = ["Term", "TermSettings", "build_terms"]


@dataclass(frozen=True)
class TermSettings:
    """The terms that the total loss sums up, each with its weight [AMAGO eq. 3, 6]."""

    critic: CriticSettings = field(default_factory=CriticSettings)
    actor: ActorSettings = field(default_factory=ActorSettings)
    cloning: CloningSettings = field(default_factory=CloningSettings)
    world_model: WorldModelSettings = field(default_factory=WorldModelSettings)


def build_terms(settings: TermSettings, custom: Sequence[Term] = ()) -> tuple[Term, ...]:
    """The built-in terms, then a user's own; ValueError where a name or weight is missing."""
    terms: list[Term] = [
        CriticTerm(settings.critic),
        ActorTerm(settings.actor),
        CloningTerm(settings.cloning),
    ]
    if settings.world_model.weight:
        terms.append(WorldModelTerm(settings.world_model))
    terms += custom
    for term in terms:
        named = isinstance(getattr(term, "name", None), str) and term.name
        if not named or not isinstance(getattr(term, "weight", None), int | float):
            raise ValueError(
                f"expected a loss term with a name and a weight, got {type(term).__name__}; "
                'write for instance: name, weight = "entropy", 0.01'
            )
    names = [term.name for term in terms]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"expected loss terms of different names, got {names.count(name)} called {name!r}; "
                "rename yours"
            )
    return tuple(terms)
