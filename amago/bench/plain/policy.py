"""Acting of the plain implementation, without a cache."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from amago.bench.plain.agent import PlainAgent, Rows
from amago.types import Array, Timestep


class PlainPolicy:
    """Implements amago.types.Policy; the memory is the list of all timesteps so far."""

    def __init__(self, agent: PlainAgent, greedy: bool = False) -> None:
        self.agent, self.greedy = agent.eval(), greedy
        self.device = next(agent.parameters()).device

    def initial_state(self, num_lanes: int) -> list[Timestep]:
        return []

    @torch.no_grad()
    def act(self, timestep: Timestep, state: list[Timestep]) -> tuple[Array, list[Timestep]]:
        agent = self.agent
        state = [*state, timestep][-(int(timestep.time.max()) + 1) :]
        rows = _stacked(state, self.device)
        step = torch.arange(len(state), device=self.device)
        begin = (len(state) - 1 - rows.time[:, -1])[:, None, None]  # where the rollout began
        earlier = (step <= step[:, None]) & (step >= begin)
        allowed = earlier | torch.eye(len(state), dtype=torch.bool, device=self.device)
        states = agent.states(rows, allowed[:, None])[:, -1]
        logits = agent.actor(states).unflatten(-1, agent.shape)[:, agent.acting_index]
        probs = agent.probabilities(logits)
        chosen = probs.argmax(-1) if self.greedy else torch.multinomial(probs, 1)[:, 0]
        return chosen.cpu().numpy(), state

    def select(self, state: list[Timestep], lanes: Array) -> list[Timestep]:
        return [timestep.select(lanes) for timestep in state]


def _stacked(timesteps: Sequence[Timestep], device: torch.device) -> Rows:
    """Timesteps [N] as rows [N, L]."""

    def stack(arrays: Sequence[Array]) -> torch.Tensor:
        return torch.from_numpy(np.stack(arrays, 1)).to(device)

    return Rows(
        obs={key: stack([t.obs[key] for t in timesteps]) for key in timesteps[0].obs},
        prev_action=stack([t.prev_action for t in timesteps]),
        prev_reward=stack([t.prev_reward for t in timesteps]),
        time=stack([t.time for t in timesteps]),
        first=stack([t.first for t in timesteps]),
    )
