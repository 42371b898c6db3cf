"""What an agent thinks while it acts: its policy, its values, and where it looks back.

Nothing here changes what the agent does: `Mind.act` is `AgentPolicy.act` with hooks on the
networks for the length of the call. Sessions share the networks, so they must act in one thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from amago.agent.policy import AgentPolicy
from amago.nets.distributions import FlooredCategorical, TanhGaussian
from amago.nets.memory.cache import KeyValueCache
from amago.nets.memory.transformer import TransformerMemory
from amago.types import ACTION_MASK, Array, Timestep


@dataclass(frozen=True)
class Thought:
    """What the agent thought at one row."""

    probabilities: list[float] | None
    """Of each action at the acting discount; None for other kinds of actions."""
    mean: list[float] | None
    """Of each number of a continuous action."""
    deviation: list[float] | None
    """Standard deviation of each number, before it is squashed."""
    values: list[float] | None
    """Q of the chosen action at every discount, in rewards as the environment pays them."""
    attention: Tensor | None
    """Weights [layers, heads, rows in memory], oldest row first."""


class Mind:
    """A loaded agent as one session uses it."""

    def __init__(self, policy: AgentPolicy, reward_scale: float) -> None:
        self.policy, self.agent = policy, policy.agent
        self._reward_scale = reward_scale
        memory = self.agent.memory
        self.looks_back = isinstance(memory, TransformerMemory)
        self.num_layers = self.num_heads = 0
        if isinstance(memory, TransformerMemory):
            self.num_layers = memory.settings.num_layers
            self.num_heads = memory.settings.num_heads
        self.discounts = [round(float(value), 5) for value in self.agent.discounts]
        self.acting_discount = self.discounts[policy.index]

    def empty_memory(self) -> Any:
        return self.policy.initial_state(1)

    def act(self, row: Timestep, memory: Any, seed: int) -> tuple[Array, Any]:
        """An action that depends on row, memory and seed alone, and the memory with the row."""
        self.policy.generator.manual_seed(seed)
        return self.policy.act(row, memory)

    def think(self, row: Timestep, memory: Any, seed: int) -> tuple[Array, Any, Thought]:
        """The same, and what the agent thought."""
        seen: dict[str, Any] = {}
        with self._listening(memory, seen):
            action, memory = self.act(row, memory, seed)
        return action, memory, self._thought(row, action, seen)

    @contextlib.contextmanager
    def _listening(self, memory: Any, seen: dict[str, Any]) -> Iterator[None]:
        hooks = [
            self.agent.actor.trunk.register_forward_pre_hook(
                lambda _, inputs: seen.update(state=inputs[0])
            )
        ]
        if isinstance(self.agent.memory, TransformerMemory):
            seen["attention"] = []
            for layer, block in enumerate(self.agent.memory.blocks):
                attention = block.get_submodule("attention")
                hooks.append(attention.register_forward_pre_hook(_spy(memory, layer, seen)))
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    @torch.inference_mode()
    def _thought(self, row: Timestep, action: Array, seen: dict[str, Any]) -> Thought:
        state, mask = seen["state"], row.obs.get(ACTION_MASK)
        allowed = None if mask is None else torch.from_numpy(mask).flatten(1).bool()
        policy = self.agent.actor.at_discount(state, self.policy.index, allowed)
        probabilities = mean = deviation = None
        if isinstance(policy, FlooredCategorical):
            probabilities = _rounded(policy.probs[0])
        elif isinstance(policy, TanhGaussian):
            mean, deviation = _rounded(policy.mode()[0]), _rounded(policy.log_std[0].exp())
        looked = seen.get("attention")
        return Thought(
            probabilities,
            mean,
            deviation,
            self._values(state, action),
            torch.stack(looked) if looked else None,
        )

    def _values(self, state: Tensor, action: Array) -> list[float] | None:
        if self.agent.critic_trunk is not None:
            return None  # these critics have a memory of their own, which acting does not fill
        value = self.agent.critics(state, self.agent.popart).at(torch.from_numpy(action))
        return _rounded(value.raw.mean(0)[0] / self._reward_scale)


def _spy(memory: KeyValueCache, layer: int, seen: dict[str, Any]) -> Any:
    """A hook that reads attention from the acting cache, after the layer has written to it."""

    def hook(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        x, rotation, mix = inputs

        def listening(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            mixed: Tensor = mix(query, key, value)
            seen["attention"].append(_weights_of(memory, layer, query))
            return mixed

        return x, rotation, listening

    return hook


def _weights_of(cache: KeyValueCache, layer: int, query: Tensor) -> Tensor:
    """Attention of lane 0's newest row [heads, rows in memory], oldest row first."""
    count = int(min(cache.lengths[0], cache.context_length))
    keys = cache.keys[layer, 0, :, :count]  # [heads, slots, dim]
    scores = (keys @ query[0][:, :, None])[..., 0] / query.shape[-1] ** 0.5
    weights: Tensor = scores.softmax(-1)
    # A full ring overwrites its oldest slot, so the oldest row is the one after the newest.
    return weights.roll(-int(cache.lengths[0] % count), -1)


def _rounded(values: Tensor) -> list[float]:
    rounded: list[float] = values.double().round(decimals=4).tolist()
    return rounded
