"""Values as a distribution over bins of return: classification in place of regression.

The bins are evenly spaced in symlog, so that rewards of very different sizes get the same
resolution, and the loss is a cross-entropy, whose gradient does not grow with the return.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from amago.nets.layers import symexp, symlog
from amago.nets.value import Mix, Value

_NUM_BINS = 101
"""Bins of a classification critic."""
_LIMITS = (-20_000.0, 20_000.0)
"""Returns that the bins span, after --agent.reward-scale; symmetric, so that untrained critics
start near 0."""
_SMOOTHING = 0.75
"""HL-Gauss: the target's deviation in widths of a bin [Farebrother et al. 2024]."""
_LEAST_SHARE = 0.1
"""A bin that gets less than this share of an even distribution counts as empty when read."""


class ReturnBins(nn.Module):
    """How a return becomes probabilities of K bins, and what return probabilities stand for.

    two_hot: the two bins around the return share it, linearly in the return itself, so that
    the mean over random targets is exact. hl_gauss: a Gaussian around symlog(return),
    integrated over every bin.
    """

    centres: Tensor
    values: Tensor

    def __init__(
        self,
        kind: Literal["two_hot", "hl_gauss"],
        count: int = _NUM_BINS,
        limits: tuple[float, float] = _LIMITS,
    ) -> None:
        super().__init__()
        self.kind, self.count = kind, count
        with torch.device("cpu"):  # numbers, also where an agent is built for its shapes alone
            self._fill(*limits)

    def _fill(self, least: float, greatest: float) -> None:
        low, high = symlog(torch.tensor((least, greatest), dtype=torch.float64)).tolist()
        centres = torch.linspace(low, high, self.count, dtype=torch.float64)
        self.width = (high - low) / (self.count - 1)
        self.register_buffer("centres", centres, persistent=False)
        self.register_buffer("values", symexp(centres), persistent=False)
        # As plain numbers: to read them from a device would stop it.
        self.outermost = (float(centres[0]), float(centres[-1]))
        self.limits = (float(self.values[0]), float(self.values[-1]))
        if self.kind == "hl_gauss":
            # A smoothed target spreads over bins whose returns grow exponentially: read with
            # the centres themselves it would come out too large, and bootstrapping would
            # compound that. These values make every centre come out as it went in.
            self.values = torch.linalg.solve(self._kept(self.encode(self.values)), self.values)

    def encode(self, target: Float[Tensor, "*rows"]) -> Float[Tensor, "*rows K"]:
        """Probabilities of the bins; returns beyond the limits count as the limits."""
        target = target.double()
        if self.kind == "two_hot":
            target = target.clamp(*self.limits)
            upper = torch.bucketize(target, self.values).clamp(1, self.count - 1)
            below, above = self.values[upper - 1], self.values[upper]
            share = ((target - below) / (above - below))[..., None]
            hot = F.one_hot(upper, self.count).double()
            return share * hot + (1.0 - share) * hot.roll(-1, -1)
        z = symlog(target).clamp(*self.outermost)[..., None]
        start = self.centres[:1] - self.width / 2
        edges = torch.cat((start, self.centres + self.width / 2))
        below_edge = torch.erf((edges - z) / (_SMOOTHING * self.width * math.sqrt(2.0)))
        mass = below_edge.diff(dim=-1)
        return mass / mass.sum(-1, keepdim=True)

    def decode(self, logits: Float[Tensor, "*rows K"]) -> Float[Tensor, "*rows"]:
        """The mean return of a distribution."""
        return self._kept(torch.softmax(logits, -1)) @ self.values.to(logits.dtype)

    def _kept(self, probabilities: Float[Tensor, "*rows K"]) -> Float[Tensor, "*rows K"]:
        """Without the faint remains in bins that were never a target: the outer ones stand for
        returns so large that a ten-thousandth there would drown the small returns, and
        bootstrapping would feed on it."""
        kept = probabilities * (probabilities > _LEAST_SHARE / self.count)
        return kept / kept.sum(-1, keepdim=True)


@dataclass(frozen=True)
class BinnedValue:
    """Predictions [C, M, G] that may still know the distributions they are the means of.

    `normalised` is on the scale of symlog: the actor then weighs relative gains, task by task.
    A value under a policy is a mean of such numbers over actions, not the symlog of the mean
    return: close to 0 that would multiply whatever is wrong with large returns.
    """

    raw: Float[Tensor, "C M G"]
    normalised: Float[Tensor, "C M G"]
    bins: ReturnBins
    logits: Float[Tensor, "C M G K"] | None = None

    @classmethod
    def of(cls, logits: Float[Tensor, "C M G K"], bins: ReturnBins) -> BinnedValue:
        """The value that logits stand for."""
        raw = bins.decode(logits)
        return cls(raw, symlog(raw), bins, logits)

    def mixed(self, values: Sequence[Value], mix: Mix) -> BinnedValue:
        """Values of several actions as one; the distributions are lost."""
        raw = mix(torch.stack([value.raw for value in values]))
        normalised = mix(torch.stack([value.normalised for value in values]))
        return BinnedValue(raw, normalised, self.bins)

    def loss(self, target: Float[Tensor, "M G"]) -> Float[Tensor, "C M G"]:
        """Cross-entropy with the target's bins."""
        assert self.logits is not None, "a mean over actions has no distribution"
        want = self.bins.encode(target).to(self.logits.dtype)
        return -(want * torch.log_softmax(self.logits, -1)).sum(-1)
