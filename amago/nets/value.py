"""Values that know their own scale and loss."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn


class PopArt(nn.Module):
    """Normalises targets per discount and keeps predictions where they were [PopArt §3].

    Critics put out f; the value on the normalised scale is w·f + b, the value itself
    σ·(w·f + b) + μ. (w, b) sits outside the critics and has no gradient, so online and
    target copies share it, and `update` moves it so that no prediction changes.
    """

    mean: Tensor
    second: Tensor
    mass: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        num_discounts: int,
        *,
        enabled: bool = True,
        rate: float = 5e-4,
        min_variance: float = 1e-4,
    ) -> None:
        super().__init__()
        self.enabled, self.rate, self.min_variance = enabled, rate, min_variance
        self.register_buffer("mean", torch.zeros(num_discounts, dtype=torch.float64))
        self.register_buffer("second", torch.zeros(num_discounts, dtype=torch.float64))
        self.register_buffer("mass", torch.zeros((), dtype=torch.float64))
        self.register_buffer("weight", torch.ones(num_discounts, dtype=torch.float64))
        self.register_buffer("bias", torch.zeros(num_discounts, dtype=torch.float64))

    def statistics(self) -> tuple[Float[Tensor, " G"], Float[Tensor, " G"]]:
        """μ and σ; 0 and 1 before the first update."""
        seen = self.mass > 0
        mass = torch.where(seen, self.mass, torch.ones_like(self.mass))
        mean = self.mean / mass
        variance = torch.where(seen, self.second / mass - mean.square(), torch.ones_like(mean))
        return mean, variance.clamp(min=self.min_variance).sqrt()

    @torch.no_grad()
    def update(self, target: Float[Tensor, "M G"]) -> None:
        """Take in one batch of targets, preserving every denormalised prediction."""
        if not self.enabled or not len(target):
            return
        old_mean, old_std = self.statistics()
        untrained = bool(self.mass == 0)
        target = target.double()
        self.mean.lerp_(target.mean(0), self.rate)
        self.second.lerp_(target.square().mean(0), self.rate)
        self.mass.lerp_(torch.ones_like(self.mass), self.rate)
        if untrained:
            # Nothing is learned yet that would be worth preserving, and a first (w, b) far
            # from (1, 0) would leave the critics to grow by that factor.
            return
        mean, std = self.statistics()
        self.weight.mul_(old_std / std)
        self.bias.mul_(old_std).add_(old_mean - mean).div_(std)

    def normalise(self, target: Float[Tensor, "*rows G"]) -> Float[Tensor, "*rows G"]:
        mean, std = self.statistics()
        return (target - mean.to(target.dtype)) / std.to(target.dtype)

    def affine(self, output: Float[Tensor, "*rows G"]) -> Float[Tensor, "*rows G"]:
        return output * self.weight.to(output.dtype) + self.bias.to(output.dtype)

    def denormalise(self, normalised: Float[Tensor, "*rows G"]) -> Float[Tensor, "*rows G"]:
        mean, std = self.statistics()
        return normalised * std.to(normalised.dtype) + mean.to(normalised.dtype)


@dataclass(frozen=True)
class ScalarValue:
    """Predictions [C, M, G] of scalar critics, read on the scale that holds when asked."""

    output: Float[Tensor, "C M G"]
    popart: PopArt

    @property
    def normalised(self) -> Float[Tensor, "C M G"]:
        return self.popart.affine(self.output)

    @property
    def raw(self) -> Float[Tensor, "C M G"]:
        return self.popart.denormalise(self.normalised)

    def loss(self, target: Float[Tensor, "M G"]) -> Float[Tensor, "C M G"]:
        """Squared error on the normalised scale [AMAGO eq. 2]."""
        return (self.normalised - self.popart.normalise(target)).square()
