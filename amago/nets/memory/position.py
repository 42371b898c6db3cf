"""How time enters the Transformer: added to the embedding, or rotated into it."""

from __future__ import annotations

from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def _angles(time: Tensor, num_pairs: int, dtype: torch.dtype) -> Tensor:
    """time · 10000^(-i/num_pairs), in float64 so that late steps keep their phase."""
    angles = time.double()[..., None] * _rates(num_pairs, time.device)
    return torch.remainder(angles, 2 * torch.pi).to(dtype)


@cache
def _rates(num_pairs: int, device: torch.device) -> Tensor:
    exponents = torch.arange(num_pairs, device=device, dtype=torch.float64) / num_pairs
    return torch.pow(10_000.0, -exponents)


def sinusoid(
    time: Int[Tensor, "*rows"], size: int, dtype: torch.dtype
) -> Float[Tensor, "*rows size"]:
    """Fixed sines and cosines of absolute time [Vaswani et al. 2017]."""
    angles = _angles(time, size // 2, dtype)
    return torch.cat((angles.sin(), angles.cos()), -1)


def rotary(
    time: Int[Tensor, " M"], head_dim: int, dtype: torch.dtype
) -> tuple[Float[Tensor, "M 1 pairs"], Float[Tensor, "M 1 pairs"]]:
    """Cosines and sines that rotate queries and keys of every head [RoPE]."""
    angles = _angles(time, head_dim // 2, dtype)[:, None]
    return angles.cos(), angles.sin()


def rotate(
    x: Float[Tensor, "M H dim"], cos: Float[Tensor, "M 1 pairs"], sin: Float[Tensor, "M 1 pairs"]
) -> Float[Tensor, "M H dim"]:
    left, right = x.chunk(2, -1)
    return torch.cat((left * cos - right * sin, left * sin + right * cos), -1)


class LearnedPosition(nn.Module):
    """A table with one vector per step of the horizon."""

    def __init__(self, horizon: int, size: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(horizon + 1, size))
        nn.init.trunc_normal_(self.table, std=0.02)

    def forward(self, time: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows size"]:
        return self.table[time]
