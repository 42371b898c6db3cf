"""What every loss term is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn

    from amago.agent.agent import Agent
    from amago.agent.transitions import Transitions


class Term:
    """One summand of the total loss: weight · mean of `loss`, logged as `loss/<name>`."""

    name: str
    weight: float
    network: nn.Module | None = None
    """What the term trains besides the agent, if anything; saved with the agent. A term that is a
    torch module itself is its own network."""

    def build(self, agent: Agent) -> None:
        """Called once for a new agent: make the network here if its sizes depend on the agent."""

    def update_statistics(self, transitions: Transitions) -> None:
        """Called once per update, before `loss`; restored if the update is not applied."""

    def loss(self, transitions: Transitions) -> Tensor:
        """[M, G], or [M] where discounts make no difference."""
        raise NotImplementedError

    def metrics(self, transitions: Transitions) -> dict[str, Tensor]:
        """Scalars to log besides the loss, by their paths; computed without gradient."""
        return {}
