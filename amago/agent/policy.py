"""The agent at work: timesteps in, actions out, memory carried between them."""

from __future__ import annotations

from typing import Any

import torch

from amago.agent.agent import Agent, action_mask
from amago.nets.upload import upload_arrays
from amago.types import Array, Batch, Timestep

_OBS = "obs/"


class AgentPolicy:
    """Acts with the policy of one discount; implements amago.types.Policy.

    Leaves the agent in evaluation mode: statistics are frozen and nothing is dropped.
    """

    def __init__(
        self, agent: Agent, *, seed: int, greedy: bool = False, discount: float | None = None
    ) -> None:
        self.agent, self.greedy = agent, greedy
        self.index = agent.acting_index if discount is None else _index(agent, discount)
        self.device = agent.discounts.device
        self.generator = torch.Generator(self.device).manual_seed(seed)

    def initial_state(self, num_lanes: int) -> Any:
        return self.agent.memory.initial_state(num_lanes)

    @torch.inference_mode()
    def act(self, timestep: Timestep, state: Any, greedy: bool | None = None) -> tuple[Array, Any]:
        """Actions of all lanes; `greedy` overrides the policy's own choice for this step."""
        agent = self.agent
        if agent.training:  # walking through all modules at every step costs a tenth of it
            agent.eval()
        agent.memory.announce(state, timestep.time == 0)
        batch = batch_of(timestep, self.device)
        hidden, state = agent.memory.step(agent.encoder(batch), batch.time, state)
        return self.choose(hidden, batch, greedy), state

    def choose(self, hidden: torch.Tensor, batch: Batch, greedy: bool | None = None) -> Array:
        """Actions of all lanes in the states that their memories are in."""
        policy = self.agent.actor.at_discount(hidden, self.index, action_mask(batch.obs))
        chosen = (
            policy.mode()
            if (self.greedy if greedy is None else greedy)
            else policy.sample(self.generator)
        )
        return chosen.cpu().numpy()

    def select(self, state: Any, lanes: Array) -> Any:
        return self.agent.memory.select(state, lanes)


def batch_of(timestep: Timestep, device: torch.device) -> Batch:
    """A timestep's arrays as tensors: every lane is a sequence of one row."""
    names: tuple[str, ...] = ("prev_action", "prev_reward", "time", "first", "terminal")
    if timestep.instruction is not None:
        assert timestep.num_goals is not None and timestep.progress is not None
        names += ("instruction", "num_goals", "progress")
    arrays = {f"{_OBS}{key}": value for key, value in timestep.obs.items()}
    arrays |= {name: getattr(timestep, name) for name in names}
    moved = upload_arrays(arrays, device)
    return Batch(
        obs={key: moved.pop(f"{_OBS}{key}") for key in timestep.obs},
        lengths=(1,) * len(timestep),
        **moved,
    )


def _index(agent: Agent, discount: float) -> int:
    known = [round(float(value), 6) for value in agent.discounts]
    if round(discount, 6) not in known:
        raise ValueError(f"the agent has no policy for discount {discount}; it has {known}")
    return known.index(round(discount, 6))
