"""Running statistics: of input features, and as PopArt's basis of targets."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from amago.nets.layers import TensorCache
from amago.nets.place import means


class RunningMoments(nn.Module):
    """Mean and second moment per feature, by exponential averages in float64.

    Averages start at 0; `mass` is the weight that they have seen, by which they are corrected.
    """

    mean: Tensor
    second: Tensor
    mass: Tensor

    def __init__(self, size: int, rate: float, min_std: float) -> None:
        super().__init__()
        self.rate, self.min_std = rate, min_std
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("second", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("mass", torch.zeros((), dtype=torch.float64))

    @torch.no_grad()
    def average(self, x: Float[Tensor, "M F"]) -> None:
        """Take in one batch, or a part of it on every rank; an empty one changes nothing."""
        if not len(x):
            return
        x = x.double()
        mean, second = means(x, x.square())
        self.mean.lerp_(mean, self.rate)
        self.second.lerp_(second, self.rate)
        self.mass.lerp_(torch.ones_like(self.mass), self.rate)

    def statistics(self) -> tuple[Float[Tensor, " F"], Float[Tensor, " F"]]:
        """Mean and standard deviation; 0 and 1 before the first batch."""
        seen = self.mass > 0
        mass = torch.where(seen, self.mass, torch.ones_like(self.mass))
        mean = self.mean / mass
        variance = torch.where(seen, self.second / mass - mean.square(), torch.ones_like(mean))
        return mean, variance.clamp(min=0.0).sqrt().clamp(min=self.min_std)


class RunningNormalizer(RunningMoments):
    """Features minus their running mean, divided by their deviation, clipped."""

    def __init__(
        self, size: int, rate: float = 1e-4, min_std: float = 1e-2, clip: float = 10.0
    ) -> None:
        super().__init__(size, rate, min_std)
        self.clip = clip
        self._current = TensorCache[tuple[Tensor, Tensor]]()

    def update(self, x: Float[Tensor, "M F"]) -> None:
        """Take in one batch of raw rows."""
        self.average(x)

    def forward(self, x: Float[Tensor, "*rows F"]) -> Float[Tensor, "*rows F"]:
        mean, std = self._current(self.statistics, self.mean, self.second, self.mass)
        normal = (x - mean.to(x.dtype)) / std.to(x.dtype)
        return normal.clamp(-self.clip, self.clip)
