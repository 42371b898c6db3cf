"""The long-context Transformer of AMAGO (paper appendix A.3).

Pre-LN blocks with NormFormer's extra norms and head scales, leaky ReLUs and σReparam
weights; each of the three can be switched off by itself.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from amago.nets.layers import SigmaLinear
from amago.nets.memory.cache import KeyValueCache
from amago.nets.memory.interface import Memory
from amago.nets.memory.position import LearnedPosition, rotary, rotate, sinusoid
from amago.nets.settings import TransformerSettings

Rotation = tuple[Tensor, Tensor] | None


class Attention(nn.Module):
    """Causal self-attention with one learnable scale per head."""

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        linear = SigmaLinear if settings.sigma_reparam else nn.Linear
        width = settings.model_dim
        self.num_heads = settings.num_heads
        self.qkv = linear(width, 3 * width, bias=False)
        self.out = linear(width, width)
        heads = torch.ones(settings.num_heads, 1)
        self.head_scale = nn.Parameter(heads) if settings.extra_norms else None

    def forward(self, x: Float[Tensor, "B T D"], rotation: Rotation) -> Float[Tensor, "B T D"]:
        query, key, value = self._heads(x, rotation)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self._merge(mixed)

    def step(
        self, x: Float[Tensor, "N 1 D"], rotation: Rotation, cache: KeyValueCache, layer: int
    ) -> Float[Tensor, "N 1 D"]:
        query, key, value = self._heads(x, rotation)
        keys, values = cache.write(layer, key[:, :, 0], value[:, :, 0])
        mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=cache.mask)
        return self._merge(mixed)

    def _heads(self, x: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor, Tensor]:
        shape = (*x.shape[:2], 3, self.num_heads, -1)
        query, key, value = self.qkv(x).view(shape).permute(2, 0, 3, 1, 4)  # each [B, H, T, dim]
        if rotation is not None:
            query, key = rotate(query, *rotation), rotate(key, *rotation)
        return query, key, value

    def _merge(self, mixed: Float[Tensor, "B H T dim"]) -> Float[Tensor, "B T D"]:
        mixed = mixed.transpose(1, 2)
        if self.head_scale is not None:
            mixed = mixed * self.head_scale
        merged: Tensor = self.out(mixed.flatten(2))
        return merged


class Block(nn.Module):
    """Attention, then feed-forward, each a normalised residual."""

    def __init__(self, settings: TransformerSettings) -> None:
        super().__init__()
        linear = SigmaLinear if settings.sigma_reparam else nn.Linear
        width, hidden = settings.model_dim, settings.feedforward_dim
        extra = nn.LayerNorm if settings.extra_norms else _identity
        self.norm_attention = nn.LayerNorm(width)
        self.attention = Attention(settings)
        self.norm_mixed = extra(width)
        self.norm_feedforward = nn.LayerNorm(width)
        self.widen = linear(width, hidden)
        self.activation = nn.LeakyReLU() if settings.activation == "leaky_relu" else nn.ReLU()
        self.norm_hidden = extra(hidden)
        self.narrow = linear(hidden, width)
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, x: Float[Tensor, "B T D"], rotation: Rotation) -> Float[Tensor, "B T D"]:
        x = x + self.norm_mixed(self.attention(self.norm_attention(x), rotation))
        return x + self._feedforward(x)

    def step(self, x: Tensor, rotation: Rotation, cache: KeyValueCache, layer: int) -> Tensor:
        mixed = self.attention.step(self.norm_attention(x), rotation, cache, layer)
        x = x + self.norm_mixed(mixed)
        return x + self._feedforward(x)

    def _feedforward(self, x: Tensor) -> Tensor:
        hidden = self.norm_hidden(self.activation(self.widen(self.norm_feedforward(x))))
        narrowed: Tensor = self.dropout(self.narrow(hidden))
        return narrowed


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
        self.dropout = nn.Dropout(settings.dropout)
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

    def forward(
        self, x: Float[Tensor, "B T E"], time: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        x, rotation = self._embed(x, time)
        for block in self.blocks:
            x = block(x, rotation)
        x = self.norm(x)
        return x

    def initial_state(self, num_lanes: int) -> KeyValueCache:
        settings = self.settings
        return KeyValueCache(
            settings.num_layers, num_lanes, settings.num_heads,
            settings.model_dim // settings.num_heads, self.context_length, self.embed.weight.data,
        )  # fmt: skip

    def step(
        self, x: Float[Tensor, "N E"], time: Int[Tensor, " N"], state: KeyValueCache
    ) -> tuple[Float[Tensor, "N D"], KeyValueCache]:
        state.advance(time == 0)
        x, rotation = self._embed(x[:, None], time[:, None].to(x.device))
        for layer, block in enumerate(self.blocks):
            assert isinstance(block, Block)
            x = block.step(x, rotation, state, layer)
        return self.norm(x[:, 0]), state

    def _embed(self, x: Tensor, time: Tensor) -> tuple[Tensor, Rotation]:
        settings = self.settings
        x = self.embed(x)
        rotation = None
        if self.learned is not None:
            x = x + self.learned(time)
        elif settings.position == "sinusoid":
            x = x + sinusoid(time, settings.model_dim, x.dtype)
        else:
            rotation = rotary(time, settings.model_dim // settings.num_heads, x.dtype)
        return self.dropout(x), rotation


def _identity(size: int) -> nn.Module:
    return nn.Identity()
