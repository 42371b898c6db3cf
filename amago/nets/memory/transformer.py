"""The long-context Transformer of AMAGO (paper appendix A.3).

Pre-LN blocks with NormFormer's extra norms and head scales, leaky ReLUs and σReparam
weights; each of the three can be switched off by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from amago.config import Config
from amago.nets.layers import Dropout, SigmaLinear
from amago.nets.memory.cache import KeyValueCache, Span
from amago.nets.memory.interface import Memory
from amago.nets.memory.packed import attend_packed
from amago.nets.memory.position import LearnedPosition, rotary, rotate, sinusoid
from amago.nets.precision import widened
from amago.nets.sequences import Sequences
from amago.nets.settings import TransformerSettings
from amago.types import Array

_Rotation = tuple[Tensor, Tensor] | None
Heads = Float[Tensor, "M H dim"]
Mix = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Queries, keys and values of M rows → what each row gathered from the rows that it may see."""


class _Attention(nn.Module):
    """Self-attention with one learnable scale per head; `mix` decides who sees whom."""

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        linear = SigmaLinear if settings.sigma_reparam else nn.Linear
        width = settings.model_dim
        self.num_heads = settings.num_heads
        self.qkv = linear(width, 3 * width, bias=False)
        self.out = linear(width, width)
        heads = torch.ones(settings.num_heads, 1)
        self.head_scale = nn.Parameter(heads) if settings.extra_norms else None

    def forward(
        self, x: Float[Tensor, "M D"], rotation: _Rotation, mix: Mix
    ) -> Float[Tensor, "M D"]:
        query, key, value = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).unbind(1)
        if rotation is not None:
            query, key = rotate(query, *rotation), rotate(key, *rotation)
        mixed = mix(query, key, value)
        if self.head_scale is not None:
            mixed = mixed * self.head_scale
        merged: Tensor = self.out(mixed.flatten(1))
        return merged


def causal_mix(sequences: Sequences) -> Mix:
    """Every row sees itself and the earlier rows of its sequence; nothing is padded."""

    if sequences.device.type != "cpu":
        return partial(attend_packed, sequences)
    runs = sequences.runs
    rows = [count * length for count, length in runs]

    def mix(query: Heads, key: Heads, value: Heads) -> Heads:
        heads = zip(*(torch.split(x, rows) for x in (query, key, value)), strict=True)
        return torch.cat([_causal(*run, *h) for run, h in zip(runs, heads, strict=True)])

    return mix


def _causal(count: int, length: int, query: Heads, key: Heads, value: Heads) -> Heads:
    query, key, value = (
        x.view(count, length, *x.shape[1:]).transpose(1, 2) for x in (query, key, value)
    )
    mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    return mixed.transpose(1, 2).flatten(0, 1)


def cached_mix(cache: KeyValueCache, layer: int) -> Mix:
    """Row n is the newest step of lane n, which sees all that its cache holds."""

    def mix(query: Heads, key: Heads, value: Heads) -> Heads:
        cache.write(layer, key, value)
        query = query * query.shape[-1] ** -0.5
        return torch.cat(
            [_look_back(query[span.lanes], *cache.read(layer, span), span) for span in cache.spans]
        )

    return mix


def _look_back(query: Heads, keys: Tensor, values: Tensor, span: Span) -> Heads:
    """With one query a head, two batched products beat the fused kernel on a CPU."""
    scores = torch.bmm(query.flatten(0, 1)[:, None], keys.flatten(0, 1).mT)
    if span.hidden is not None:
        scores.view(*query.shape[:2], -1).masked_fill_(span.hidden, -torch.inf)
    return torch.bmm(scores.softmax(-1), values.flatten(0, 1)).view(query.shape)


class Block(nn.Module):
    """Attention, then feed-forward, each a normalised residual."""

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        linear = SigmaLinear if settings.sigma_reparam else nn.Linear
        width, hidden = settings.model_dim, settings.feedforward_dim
        extra = nn.LayerNorm if settings.extra_norms else _identity
        self.norm_attention = nn.LayerNorm(width)
        self.attention = _Attention(settings)
        self.norm_mixed = extra(width)
        self.norm_feedforward = nn.LayerNorm(width)
        self.widen = linear(width, hidden)
        activation = nn.LeakyReLU if settings.activation == "leaky_relu" else nn.ReLU
        self.activation = activation(inplace=True)
        self.norm_hidden = extra(hidden)
        self.narrow = linear(hidden, width)
        self.dropout = Dropout(settings.dropout)

    def forward(
        self, x: Float[Tensor, "M D"], rotation: _Rotation, mix: Mix
    ) -> Float[Tensor, "M D"]:
        x = x + self.norm_mixed(self.attention(self.norm_attention(x), rotation, mix))
        hidden = self.norm_hidden(self.activation(self.widen(self.norm_feedforward(x))))
        x = x + self.dropout(self.narrow(hidden))
        return x


class TransformerMemory(Memory):
    """Linear to model_dim, position, blocks, a final LayerNorm."""

    def __init__(
        self,
        input_dim: int,
        settings: TransformerSettings,
        *,
        context_length: int,
        horizon: int | None,
    ) -> None:
        super().__init__()
        self.settings, self.context_length = settings, context_length
        self.embed = nn.Linear(input_dim, settings.model_dim)
        self.embed_previous = None
        if settings.previous_row:
            self.embed_previous = nn.Linear(input_dim, settings.model_dim, bias=False)
        self.dropout = Dropout(settings.dropout)
        self.blocks = nn.ModuleList(Block(settings) for _ in range(settings.num_layers))
        self.norm = nn.LayerNorm(settings.model_dim)
        self.output_dim = settings.model_dim
        self.learned = None
        if settings.position == "learned":
            if horizon is None:
                raise ValueError(
                    "--transformer.position learned needs an environment with a known horizon; "
                    "give --env.horizon or choose sinusoid or rope"
                )
            self.learned = LearnedPosition(horizon, settings.model_dim)

    @classmethod
    def build(
        cls, config: Config, input_dim: int, *, context_length: int, horizon: int | None
    ) -> TransformerMemory:
        return cls(input_dim, config.transformer, context_length=context_length, horizon=horizon)

    def forward(
        self, x: Float[Tensor, "M E"], time: Int[Tensor, " M"], sequences: Sequences
    ) -> Float[Tensor, "M D"]:
        previous = sequences.previous(x) if self.settings.previous_row else None
        x, rotation = self.embed_rows(x, time, previous)
        mix = causal_mix(sequences)
        for block in self.blocks:
            x = block(x, rotation, mix)
        x = self.norm(x)
        return x

    def initial_state(self, num_lanes: int) -> KeyValueCache:
        settings = self.settings
        return KeyValueCache(
            settings.num_layers, num_lanes, settings.num_heads,
            settings.model_dim // settings.num_heads, self.context_length, self.embed.weight.data,
        )  # fmt: skip

    def select(self, state: KeyValueCache, lanes: Array) -> KeyValueCache:
        state.keep(lanes)
        return state

    def announce(self, state: KeyValueCache, reset: Array) -> None:
        state.advance(reset)
        state.announced = True

    def step(
        self, x: Float[Tensor, "N E"], time: Int[Tensor, " N"], state: KeyValueCache
    ) -> tuple[Float[Tensor, "N D"], KeyValueCache]:
        if not state.announced:
            state.advance(time.cpu().numpy() == 0)
        state.announced = False
        previous = None
        if self.settings.previous_row:
            last = torch.zeros_like(x) if state.last_row is None else state.last_row
            previous, state.last_row = last * (time > 0)[:, None], x
        x, rotation = self.embed_rows(x, time, previous)
        for layer, block in enumerate(self.blocks):
            x = block(x, rotation, cached_mix(state, layer))
        return self.norm(x), state

    def embed_rows(
        self, x: Tensor, time: Tensor, previous: Tensor | None
    ) -> tuple[Tensor, _Rotation]:
        """What enters the first block; `previous` are the rows before, where they enter too."""
        settings = self.settings
        x = self.embed(x)
        if self.embed_previous is not None:
            x = x + self.embed_previous(previous)
        rotation = None
        x = widened(x)  # mixed precision must round neither time nor the residual stream
        if self.learned is not None:
            x = x + self.learned(time)
        elif settings.position == "sinusoid":
            x = x + sinusoid(time, settings.model_dim, x.dtype)
        else:
            rotation = rotary(time, settings.model_dim // settings.num_heads, x.dtype)
        return self.dropout(x), rotation


def _identity(size: int) -> nn.Module:
    return nn.Identity()
