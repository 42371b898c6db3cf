"""All networks of one agent: encoder, memory, actor, critics, and target copies of the heads."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from amago.config import Config
from amago.nets.actor import Actor
from amago.nets.critic import build_critics
from amago.nets.instruction import Asked
from amago.nets.memory import FeedforwardMemory, GRUMemory, Memory, TransformerMemory
from amago.nets.packing import Packing
from amago.nets.timestep import MLPEncoder, Rows, TimestepEncoder
from amago.nets.value import PopArt
from amago.types import ACTION_MASK, Batch, EnvSpec


@dataclass(frozen=True)
class Parts:
    """A user's own classes in place of the built-in ones."""

    encoder: Callable[[EnvSpec], TimestepEncoder] | None = None
    memory: Callable[..., Memory] | None = None
    """Called as memory(input_dim, context_length=..., horizon=...)."""

    def names(self) -> dict[str, str]:
        """What a run folder remembers of them: names, never code."""
        pairs = (("encoder", self.encoder), ("memory", self.memory))
        return {key: getattr(part, "__qualname__", str(part)) for key, part in pairs if part}


class Agent(nn.Module):
    """Rows → states → G policies and C×G values."""

    discounts: Tensor

    def __init__(self, spec: EnvSpec, config: Config, parts: Parts | None = None) -> None:
        super().__init__()
        parts = parts or Parts()
        self.spec = spec
        discounts = config.agent.resolve_discounts(spec.action.kind)
        self.acting_index = discounts.index(config.agent.acting_discount)
        self.register_buffer("discounts", torch.tensor(discounts), persistent=False)
        self.encoder = (
            parts.encoder(spec)
            if parts.encoder
            else MLPEncoder(spec, config.encoder, config.instruction)
        )
        self.memory = build_memory(config, spec, self.encoder.output_dim, parts.memory)
        state_dim = self.memory.output_dim
        self.actor = Actor(state_dim, spec.action, len(discounts), config.heads)
        self.critics = build_critics(state_dim, spec.action, discounts, config.heads)
        popart = config.heads.popart and config.heads.critic == "scalar"
        self.popart = PopArt(len(discounts), enabled=popart, rate=config.heads.popart_rate)
        self.target_actor = copy.deepcopy(self.actor).requires_grad_(False)
        self.target_critics = copy.deepcopy(self.critics).requires_grad_(False)

    def states(self, rows: Rows, packing: Packing) -> Float[Tensor, "M D"]:
        """The state of every packed row, from one pass."""
        return self.memory.forward_packed(self.encoder(rows), rows.time, packing)

    def encode(self, batch: Batch) -> Float[Tensor, "B T D"]:
        """The states of a whole batch; zero where it is padded."""
        packing, rows = pack(batch)
        return packing.pad(self.states(rows, packing))

    @torch.no_grad()
    def update_targets(self, tau: float) -> None:
        """Move the target heads towards the online ones [Polyak averaging]."""
        for target, online in (
            (self.target_actor, self.actor),
            (self.target_critics, self.critics),
        ):
            torch._foreach_lerp_(
                list(target.parameters()), [p.detach() for p in online.parameters()], tau
            )


def build_memory(
    config: Config, spec: EnvSpec, input_dim: int, custom: Callable[..., Memory] | None
) -> Memory:
    context_length = resolve_context_length(config, spec)
    if custom is not None:
        return custom(input_dim, context_length=context_length, horizon=spec.horizon)
    if config.memory == "gru":
        return GRUMemory(input_dim, config.gru)
    if config.memory == "feedforward":
        return FeedforwardMemory(input_dim, config.feedforward)
    return TransformerMemory(
        input_dim, config.transformer, context_length=context_length, horizon=spec.horizon
    )


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


def pack(batch: Batch) -> tuple[Packing, Rows]:
    """The valid rows of a batch, and where they came from."""
    packing = Packing(batch.valid)
    return packing, Rows(
        obs={key: packing.pack(value) for key, value in batch.obs.items()},
        prev_action=packing.pack(batch.prev_action),
        prev_reward=packing.pack(batch.prev_reward),
        time=packing.pack(batch.time),
        first=packing.pack(batch.first),
        asked=_asked(batch, packing),
    )


def _asked(batch: Batch, packing: Packing) -> Asked | None:
    """An instruction is that of a whole window, how far it is followed that of a row."""
    if batch.instruction is None or batch.num_goals is None or batch.progress is None:
        return None
    width = batch.valid.shape[1]
    return Asked(
        goals=packing.pack(batch.instruction[:, None].expand(-1, width, -1, -1)),
        num_goals=packing.pack(batch.num_goals[:, None].expand(-1, width)),
        progress=packing.pack(batch.progress),
    )


def action_mask(obs: dict[str, Tensor]) -> Tensor | None:
    """Allowed actions [M, A], for environments that tell."""
    mask = obs.get(ACTION_MASK)
    return None if mask is None else mask.flatten(1).bool()
