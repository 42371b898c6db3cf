"""Forecasting the next row, as an auxiliary loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amago.agent.terms.term import Term
from amago.checks import at_least

if TYPE_CHECKING:
    from torch import Tensor

    from amago.agent.agent import Agent
    from amago.agent.transitions import Transitions
    from amago.nets.world_model import WorldModel


@dataclass(frozen=True)
class WorldModelSettings:
    weight: float = 0.0
    """Weight of predicting how observations change, and the reward, from state and action."""

    def __post_init__(self) -> None:
        at_least(0, self, "terms.world-model", "weight")


class WorldModelTerm(Term):
    """Forecast error per feature of the next row (squared error or cross-entropy)."""

    name = "world_model"
    network: WorldModel

    def __init__(self, settings: WorldModelSettings) -> None:
        self.weight = settings.weight

    def build(self, agent: Agent) -> None:
        from amago.nets.timestep import MLPEncoder
        from amago.nets.world_model import WorldModel

        if not isinstance(agent.encoder, MLPEncoder):
            raise ValueError(
                "--terms.world-model.weight predicts the features of the built-in encoder, got "
                f"{type(agent.encoder).__name__}; leave it at 0"
            )
        self.encoder = agent.encoder
        hidden = agent.config.heads.hidden[-1]
        self.network = WorldModel(agent.encoder, agent.memory.output_dim, agent.spec.action, hidden)

    def update_statistics(self, transitions: Transitions) -> None:
        self.network.changes.update(self._change(transitions))

    def loss(self, transitions: Transitions) -> Tensor:
        change = self.network.changes(self._change(transitions))
        reward = self.encoder.reals(transitions.next_obs, transitions.unscaled_reward)[:, -1:]
        forecast = self.network(transitions.actor_state, transitions.action)
        return self.network.error(forecast, change, reward, transitions.next_obs)

    def _change(self, transitions: Transitions) -> Tensor:
        """How much the numbers of observations differ; the reward is no part of them."""
        reward = transitions.unscaled_reward
        before, after = transitions.obs, transitions.next_obs
        changes = self.encoder.raw_reals(after, reward) - self.encoder.raw_reals(before, reward)
        return changes[:, :-1]
