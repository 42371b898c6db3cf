"""All networks of one agent: encoder, memory, actor, critics, and target copies of the heads."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from amago.agent.terms import Term, build_terms
from amago.config import Config
from amago.nets.actor import Actor
from amago.nets.critic import build_critics, build_popart
from amago.nets.memory import find_memory
from amago.nets.memory.interface import Memory
from amago.nets.precision import mixed, widened
from amago.nets.sequences import Sequences
from amago.nets.timestep import MLPEncoder, TimestepEncoder
from amago.types import ACTION_MASK, Batch, EnvSpec


@dataclass(frozen=True)
class Parts:
    """A user's own classes in place of the built-in ones, and loss terms beside them."""

    encoder: Callable[[EnvSpec], TimestepEncoder] | None = None
    memory: Callable[..., Memory] | None = None
    """Called as memory(input_dim, context_length=..., horizon=...)."""
    terms: tuple[Term, ...] = ()

    def names(self) -> dict[str, str]:
        """What a run folder remembers of them: names, never code."""
        pairs = (("encoder", self.encoder), ("memory", self.memory))
        names = {key: getattr(part, "__qualname__", str(part)) for key, part in pairs if part}
        if self.terms:
            classes = [f"{type(term).__qualname__}()" for term in self.terms]
            names["terms"] = f"[{', '.join(classes)}]"
        return names


class Agent(nn.Module):
    """Rows → states → G policies and C×G values."""

    discounts: Tensor

    def __init__(self, spec: EnvSpec, config: Config, parts: Parts | None = None) -> None:
        super().__init__()
        parts = parts or Parts()
        self.spec, self.config = spec, config
        discounts = config.agent.resolve_discounts(spec.action.kind, spec.horizon)
        self.acting_discount = config.agent.resolve_acting(spec.horizon)
        self.acting_index = discounts.index(self.acting_discount)
        self.discount_values = tuple(discounts)
        """`discounts` as they were written, for names."""
        self.register_buffer("discounts", torch.tensor(discounts), persistent=False)
        self.encoder, self.memory = _build_trunk(spec, config, parts)
        kind = config.agent.sequence_models
        self.target_trunk = self.critic_trunk = None
        if kind == "target":
            trunk = _Trunk(self.encoder, self.memory)
            self.target_trunk = copy.deepcopy(trunk).requires_grad_(False)
        elif kind == "separate":
            self.critic_trunk = _Trunk(*_build_trunk(spec, config, parts))
        state_dim = self.memory.output_dim
        self.actor = Actor(state_dim, spec.action, len(discounts), config.heads)
        self.critics = build_critics(state_dim, spec.action, discounts, config.heads)
        self.popart = build_popart(len(discounts), config.heads)
        if config.agent.critics_in_actor_loss == "trained" and spec.action.kind in (
            "multi_discrete",
            "multi_binary",
        ):
            raise ValueError(
                "--agent.critics-in-actor-loss trained is for discrete and continuous actions; "
                f"{spec.name} has {spec.action.kind} ones, whose gradient is estimated without "
                "differentiating the critics"
            )
        settings = config.agent
        if settings.trace and settings.n_step > 1:
            raise ValueError(
                f"--agent.trace {settings.trace} and --agent.n-step {settings.n_step} both "
                "lengthen targets; expected one of them: for n steps give --agent.trace 0, too"
            )
        self.target_actor = copy.deepcopy(self.actor).requires_grad_(False)
        self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)
        self.terms = build_terms(config.terms, parts.terms)
        self.term_networks = nn.ModuleDict()
        for term in self.terms:
            term.build(self)
            network = term if isinstance(term, nn.Module) else term.network
            if network is not None:
                self.term_networks[term.name] = network

    def states(self, batch: Batch) -> Float[Tensor, "M D"]:
        """The state of every row, from one pass."""
        return _states(self.encoder, self.memory, batch)

    def read(self, batch: Batch) -> States:
        """The states that actor and critics read in every row, and those of their target copies."""
        states = self.states(batch)
        if self.critic_trunk is not None:
            critic = self.critic_trunk(batch)
            return States(states, critic, states.detach(), critic.detach())
        target = states.detach()
        if self.target_trunk is not None:
            with torch.no_grad():
                target = self.target_trunk(batch)
        return States(states, states, target, target)

    def update_statistics(self, batch: Batch) -> None:
        """Show the rows of a training batch to every encoder's normaliser."""
        self.encoder.update_statistics(batch)
        for trunk in (self.target_trunk, self.critic_trunk):
            if trunk is not None:
                trunk.encoder.update_statistics(batch)

    def update_scale(self, target: Float[Tensor, "M G"]) -> None:
        """Move PopArt's statistics, and the critics with them, so that no prediction changes."""
        scale, shift = self.popart.update(self.critics.scaled(target))
        self.critics.rescale(scale, shift)
        self.target_critics.rescale(scale, shift)

    @torch.no_grad()
    def update_targets(self, tau: float) -> None:
        """Move the target heads towards the online ones [Polyak averaging]."""
        pairs: list[tuple[nn.Module, nn.Module]] = [
            (self.target_actor, self.actor),
            (self.target_critics, self.critics),
        ]
        if self.target_trunk is not None:
            pairs += [
                (self.target_trunk.encoder, self.encoder),
                (self.target_trunk.memory, self.memory),
            ]
        for target, online in pairs:
            torch._foreach_lerp_(
                list(target.parameters()), [p.detach() for p in online.parameters()], tau
            )


class _Trunk(nn.Module):
    """An encoder and a memory of one's own, beside the agent's."""

    def __init__(self, encoder: TimestepEncoder, memory: Memory) -> None:
        super().__init__()
        self.encoder, self.memory = encoder, memory

    def forward(self, batch: Batch) -> Float[Tensor, "M D"]:
        return _states(self.encoder, self.memory, batch)


def _states(encoder: TimestepEncoder, memory: Memory, batch: Batch) -> Tensor:
    with mixed():
        states: Tensor = memory(encoder(batch), batch.time, sequences_of(batch))
    return widened(states)


class States(NamedTuple):
    """States [M, D] of all rows, one for each head that reads them; targets carry no gradient."""

    actor: Tensor
    critic: Tensor
    target_actor: Tensor
    target_critic: Tensor


def _build_trunk(spec: EnvSpec, config: Config, parts: Parts) -> tuple[TimestepEncoder, Memory]:
    encoder = (
        parts.encoder(spec)
        if parts.encoder
        else MLPEncoder(spec, config.encoder, config.instruction)
    )
    return encoder, _build_memory(config, spec, encoder.output_dim, parts.memory)


def _build_memory(
    config: Config, spec: EnvSpec, input_dim: int, custom: Callable[..., Memory] | None
) -> Memory:
    make = custom or partial(find_memory(config.memory).build, config)
    context_length = resolve_context_length(config, spec)
    return make(input_dim, context_length=context_length, horizon=spec.horizon)


def resolve_context_length(config: Config, spec: EnvSpec) -> int:
    """The configured context, or the whole horizon."""
    if config.replay.context_length is not None:
        return config.replay.context_length
    if spec.horizon is not None:
        return spec.horizon
    raise ValueError(
        f"{spec.name} has no known horizon, so there is no default context length; "
        "give --replay.context-length (128 is a good start) or --env.horizon"
    )


def sequences_of(batch: Batch) -> Sequences:
    """Where the sequences of a batch lie."""
    return Sequences(batch.lengths, batch.time.device)


def action_mask(obs: dict[str, Tensor]) -> Tensor | None:
    """Allowed actions [M, A], for environments that tell."""
    mask = obs.get(ACTION_MASK)
    return None if mask is None else mask.flatten(1).bool()
