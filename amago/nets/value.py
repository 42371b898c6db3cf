"""Values that know their own scale and loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from amago.nets.normalize import RunningMoments


class PopArt(RunningMoments):
    """Statistics of the targets per discount, on whose scale values are learned [PopArt §3].

    Critics predict (value - μ)/σ. When the statistics move, `update` returns the affine map of the
    critics' outputs that preserves every value.
    """

    def __init__(
        self,
        num_discounts: int,
        *,
        enabled: bool = True,
        rate: float = 5e-4,
        min_std: float = 1e-2,
    ) -> None:
        super().__init__(num_discounts, rate, min_std)
        self.enabled = enabled

    @torch.no_grad()
    def update(
        self, target: Float[Tensor, "M G"]
    ) -> tuple[Float[Tensor, " G"], Float[Tensor, " G"]]:
        """Take in one batch of targets; the (scale, shift) that preserves all values."""
        old_mean, old_std = self.statistics()
        scale, shift = torch.ones_like(old_std), torch.zeros_like(old_mean)
        if not self.enabled or not len(target):
            return scale, shift
        untrained = self.mass == 0
        self.average(target)
        mean, std = self.statistics()
        # The first batch sets the scale. An untrained critic has nothing to preserve, and
        # preserving its noise would blow it up wherever the first targets are small.
        scale = torch.where(untrained, scale, old_std / std)
        return scale, torch.where(untrained, shift, (old_mean - mean) / std)

    def normalise(self, target: Float[Tensor, "*rows G"]) -> Float[Tensor, "*rows G"]:
        mean, std = self.statistics()
        return (target - mean.to(target.dtype)) / std.to(target.dtype)

    def denormalise(self, normalised: Float[Tensor, "*rows G"]) -> Float[Tensor, "*rows G"]:
        mean, std = self.statistics()
        return normalised * std.to(normalised.dtype) + mean.to(normalised.dtype)


Mix = Callable[[Tensor], Tensor]
"""A mean of K predictions, [K, C, M, G] → [C, M, G]."""


@runtime_checkable
class Value(Protocol):
    """What the learning rule knows of values, whichever way critics represent them."""

    @property
    def normalised(self) -> Tensor:
        """[C, M, G] on a scale of order 1, for the actor and the filter."""

    @property
    def raw(self) -> Tensor:
        """[C, M, G] on the scale of the rewards."""

    def mixed(self, values: Sequence[Value], mix: Mix) -> Value:
        """One value in place of several (self among them) that stand for several actions."""

    def loss(self, target: Tensor) -> Tensor:
        """[C, M, G], on the value's own scale."""


@dataclass(frozen=True)
class ScalarValue:
    """Predictions [C, M, G], normalised with current statistics; invalid after `popart.update`."""

    normalised: Float[Tensor, "C M G"]
    popart: PopArt

    @property
    def raw(self) -> Float[Tensor, "C M G"]:
        return self.popart.denormalise(self.normalised)

    def mixed(self, values: Sequence[Value], mix: Mix) -> ScalarValue:
        return ScalarValue(mix(torch.stack([v.normalised for v in values])), self.popart)

    def loss(self, target: Float[Tensor, "M G"]) -> Float[Tensor, "C M G"]:
        """Squared error on the normalised scale [AMAGO eq. 2]."""
        return (self.normalised - self.popart.normalise(target)).square()
