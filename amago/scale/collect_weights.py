"""The weights that acting needs, on their way from the learner to the collectors."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from amago.agent.agent import Agent
from amago.types import Array

_ACTING = ("encoder.", "memory.", "actor.")
"""Modules of an agent that choose actions."""


@dataclass(frozen=True)
class Weights:
    """What the acting modules held after a number of updates."""

    version: int
    """The number of updates."""
    arrays: dict[str, Array]

    @property
    def num_bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())


def take(agent: Agent, version: int) -> Weights:
    """A copy of an agent's acting weights; later updates do not change it."""
    tensors = {k: v for k, v in agent.state_dict().items() if k.startswith(_ACTING)}
    return Weights(version, {k: v.to("cpu", copy=True).numpy() for k, v in tensors.items()})


@torch.no_grad()
def load(agent: Agent, weights: Weights) -> None:
    """Fill the acting modules of an agent; all others keep what they have."""
    state = agent.state_dict()
    names = {name for name in state if name.startswith(_ACTING)}
    assert names == set(weights.arrays), "agents of one run have the same modules"
    for name in names:
        # An array from Ray's object store is read-only, which copying from it respects.
        state[name].copy_(torch.from_numpy(weights.arrays[name].copy()))
