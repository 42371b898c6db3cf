"""One row of experience → one vector."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from amago.nets.layers import mlp
from amago.nets.normalize import RunningNormalizer
from amago.nets.settings import EncoderSettings
from amago.types import EnvSpec


@dataclass(frozen=True)
class Rows:
    """M rows of what the policy knew, as tensors."""

    obs: dict[str, Tensor]  # [M, ...]
    prev_action: Float[Tensor, "M A"]
    prev_reward: Float[Tensor, " M"]
    time: Int[Tensor, " M"]
    first: Bool[Tensor, " M"]


class TimestepEncoder(nn.Module):
    """What a custom encoder is: rows in, vectors of `output_dim` out."""

    output_dim: int

    def update_statistics(self, rows: Rows) -> None:
        """Called once per training batch with its valid rows."""

    def forward(self, rows: Rows) -> Float[Tensor, "M E"]:
        raise NotImplementedError


class MLPEncoder(TimestepEncoder):
    """Normalised reals, one-hot categories, masks, the previous action and reward, `first`
    and time/horizon, through an MLP with a LayerNorm on its output."""

    def __init__(self, spec: EnvSpec, settings: EncoderSettings) -> None:
        super().__init__()
        self.spec = spec
        self.keys = sorted(spec.obs)
        sizes = {"real": 1, "category": 0, "mask": 0}  # prev_reward is a real feature
        for key in self.keys:
            item = spec.obs[key]
            width = item.size if item.kind == "category" else 1
            sizes[item.kind] += width * _count(item.shape)
        self.normalizer = RunningNormalizer(sizes["real"]) if settings.normalize else None
        with_time = spec.horizon is not None
        size_in = sum(sizes.values()) + spec.action.size + 1 + with_time
        self.net = mlp((size_in, *settings.hidden))
        self.norm = nn.LayerNorm(settings.hidden[-1])
        self.output_dim = settings.hidden[-1]

    def update_statistics(self, rows: Rows) -> None:
        if self.normalizer is not None:
            self.normalizer.update(self._reals(rows))

    def forward(self, rows: Rows) -> Float[Tensor, "M E"]:
        reals = self._reals(rows)
        features = [reals if self.normalizer is None else self.normalizer(reals)]
        for key in self.keys:
            item = self.spec.obs[key]
            if item.kind == "category":
                hot = F.one_hot(rows.obs[key].long(), item.size)
                features.append(hot.flatten(1).to(reals.dtype))
            elif item.kind == "mask":
                features.append(rows.obs[key].flatten(1).to(reals.dtype))
        features.append(rows.prev_action)
        features.append(rows.first.to(reals.dtype)[:, None])
        if self.spec.horizon is not None:
            features.append((rows.time.to(reals.dtype) / self.spec.horizon)[:, None])
        encoded: Tensor = self.norm(self.net(torch.cat(features, -1)))
        return encoded

    def _reals(self, rows: Rows) -> Float[Tensor, "M F"]:
        dtype = rows.prev_reward.dtype
        reals = [
            rows.obs[key].flatten(1).to(dtype)
            for key in self.keys
            if self.spec.obs[key].kind == "real"
        ]
        return torch.cat([*reals, rows.prev_reward[:, None]], -1)


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
