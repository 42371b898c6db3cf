"""What agents think while they act: their policy, their values, and where they look back.

Nothing here changes what an agent does. Sessions share the networks, so they must act in one
thread; those that think at the same time do so in one pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from amago.agent.agent import action_mask
from amago.agent.policy import AgentPolicy, batch_of
from amago.envs.joining import Joiner
from amago.nets.distributions import (
    ActionDistribution,
    FlooredCategorical,
    TanhGaussian,
    of_rows,
)
from amago.nets.memory.cache import KeyValueCache, SideBySide
from amago.nets.memory.transformer import TransformerMemory
from amago.types import Array, Timestep


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
        self.reward_scale = reward_scale
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


@dataclass(frozen=True)
class Moment:
    """A row that a mind is to think about."""

    mind: Mind
    row: Timestep
    memory: Any
    seed: int


Answer = tuple[Array, Any, Thought]
"""The action, the memory with the row, and what was thought."""


def think(moments: Sequence[Moment]) -> list[Answer]:
    """`Mind.act` for each, and what it thought; moments of one agent share a pass."""
    answers: list[Answer | None] = [None] * len(moments)
    for group in _sharing(moments):
        for number, answer in zip(group, _think([moments[n] for n in group]), strict=True):
            answers[number] = answer
    return [answer for answer in answers if answer is not None]


def _sharing(moments: Sequence[Moment]) -> list[list[int]]:
    """The numbers of moments that can share a pass: states of other memories do not join."""
    groups: dict[tuple[int, int], list[int]] = {}
    for number, moment in enumerate(moments):
        alone = -1 if moment.mind.looks_back else number
        groups.setdefault((id(moment.mind.agent), alone), []).append(number)
    return list(groups.values())


@torch.inference_mode()
def _think(moments: Sequence[Moment]) -> list[Answer]:
    """Of minds of one agent."""
    mind, memories = moments[0].mind, [moment.memory for moment in moments]
    agent, policy = mind.agent, mind.policy
    rows = Joiner(range(len(moments))).rows([moment.row for moment in moments])
    batch = batch_of(rows, policy.device)
    state = SideBySide(memories) if mind.looks_back else memories[0]
    agent.memory.announce(state, rows.time == 0)
    with _listening(mind, memories) as looked:
        hidden, state = agent.memory.step(agent.encoder(batch), batch.time, state)
    after = memories if mind.looks_back else [state]
    choices = agent.actor.at_discount(hidden, policy.index, action_mask(batch.obs))
    actions = _sampled(choices, moments)
    thoughts = _thoughts(mind, choices, _values(mind, hidden, actions), looked)
    own = [actions[n : n + 1].cpu().numpy() for n in range(len(moments))]
    return list(zip(own, after, thoughts, strict=True))


def _sampled(choices: ActionDistribution, moments: Sequence[Moment]) -> Tensor:
    """An action per row, each with the seed of its own moment."""
    policy = moments[0].mind.policy
    if policy.greedy:
        return choices.mode()
    return torch.cat(
        [
            of_rows(choices, slice(n, n + 1)).sample(policy.generator.manual_seed(moment.seed))
            for n, moment in enumerate(moments)
        ]
    )


def _values(mind: Mind, hidden: Tensor, actions: Tensor) -> Tensor | None:
    """[N, discounts]."""
    agent = mind.agent
    if agent.critic_trunk is not None:
        return None  # these critics have a memory of their own, which acting does not fill
    raw: Tensor = agent.critics(hidden, agent.popart).at(actions).raw
    return raw.mean(0) / mind.reward_scale


def _thoughts(
    mind: Mind, choices: ActionDistribution, values: Tensor | None, looked: list[list[Tensor]]
) -> Iterator[Thought]:
    """One per row; `looked` has the weights of every row's layers."""
    probabilities = _table(choices.probs if isinstance(choices, FlooredCategorical) else None)
    mean = deviation = _table(None)
    if isinstance(choices, TanhGaussian):
        mean, deviation = _table(choices.mode()), _table(choices.log_std.exp())
    expected = _table(values)
    for n, layers in enumerate(looked):
        attention = torch.stack(layers) if layers else None
        yield Thought(probabilities(n), mean(n), deviation(n), expected(n), attention)


def _table(numbers: Tensor | None) -> Callable[[int], list[float] | None]:
    """The rows of [N, F], rounded."""
    if numbers is None:
        return lambda _: None
    rounded: list[list[float]] = numbers.double().round(decimals=4).tolist()
    return lambda row: rounded[row]


@contextlib.contextmanager
def _listening(mind: Mind, memories: Sequence[Any]) -> Iterator[list[list[Tensor]]]:
    """Collects the attention of every lane, layer by layer."""
    looked: list[list[Tensor]] = [[] for _ in memories]
    hooks = []
    if isinstance(mind.agent.memory, TransformerMemory):
        for layer, block in enumerate(mind.agent.memory.blocks):
            attention = block.get_submodule("attention")
            hooks.append(attention.register_forward_pre_hook(_spy(memories, layer, looked)))
    try:
        yield looked
    finally:
        for hook in hooks:
            hook.remove()


def _spy(caches: Sequence[KeyValueCache], layer: int, looked: list[list[Tensor]]) -> Any:
    """A hook that reads attention from the acting caches, after the layer has written to them."""

    def hook(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        x, rotation, mix = inputs

        def listening(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            mixed: Tensor = mix(query, key, value)
            for cache, own, weights in zip(caches, query, looked, strict=True):
                weights.append(_weights_of(cache, layer, own))
            return mixed

        return x, rotation, listening

    return hook


def _weights_of(cache: KeyValueCache, layer: int, query: Tensor) -> Tensor:
    """Attention of a lane's newest row [heads, rows in memory], oldest row first."""
    count = int(min(cache.lengths[0], cache.context_length))
    keys = cache.keys[layer, 0, :, :count]  # [heads, slots, dim]
    scores = (keys @ query[:, :, None])[..., 0] / query.shape[-1] ** 0.5
    weights: Tensor = scores.softmax(-1)
    if count < cache.context_length:
        return weights
    # A full ring overwrites its oldest slot, so the oldest row is the one after the newest.
    return weights.roll(-int(cache.lengths[0] % count), -1)
