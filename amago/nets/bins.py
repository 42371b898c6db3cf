"""Values as a distribution over bins of return: classification in place of regression.

The bins are evenly spaced in symlog, so that rewards of very different sizes get the same
resolution, and the loss is a cross-entropy, whose gradient does not grow with the return.

A critic gives a place on that scale, learned as scalar critics learn a value, and a logit of every
bin. The place carries a peak of mass along. Bootstrapped targets move by a bin in twenty updates;
with the logits alone every bin that they reach would have to climb from nothing, at a tenth of a
unit an update, and what leaves the old bin meanwhile would spread over returns around 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from amago.nets.layers import symexp, symlog
from amago.nets.value import Mix, PopArt, Value

_NUM_BINS = 101
"""Bins of a classification critic."""
_LIMITS = (-20_000.0, 20_000.0)
"""Returns that the bins span, after --agent.reward-scale; symmetric, so that untrained critics
start near 0."""
LEAST_STD = 0.2
"""Least unit of places and advantages, in symlog: one bin. Where all returns are alike, smaller
ones would hold a place back, and the logits would have to follow targets alone."""
_SMOOTHING = 0.75
"""HL-Gauss: the target's deviation in widths of a bin [Farebrother et al. 2024]."""
_PEAK = {"two_hot": 0.5, "hl_gauss": _SMOOTHING}
"""Scale of the peak that a place stands for, in widths of a bin: about that of one target."""
_FREEDOM = 3.0
"""The peak is Student's t of this many degrees of freedom: far returns cost a logit of ten or so,
which a random return can make up for; with a Gaussian they would cost hundreds."""


class ReturnBins(nn.Module):
    """How a return becomes probabilities of K bins, and what return probabilities stand for.

    Each bin's centre has a shape: itself alone (two_hot), or a Gaussian around it in symlog
    (hl_gauss). A return shares the shapes of its two neighbours, linearly in the return itself, so
    that it comes out as it went in, and so does the mean over random targets. Bootstrapping would
    compound a bias: by 1/(1-γ).
    """

    centres: Tensor
    values: Tensor
    shapes: Tensor
    returns: Tensor

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
        returns = symexp(centres)
        shapes = torch.eye(self.count, dtype=torch.float64)
        if self.kind == "hl_gauss":
            shapes = _gaussians(centres, _SMOOTHING * self.width)
        self.register_buffer("centres", centres, persistent=False)
        self.register_buffer("returns", returns, persistent=False)
        self.register_buffer("shapes", shapes, persistent=False)
        # What each bin counts when read, so that every shape has its centre's return as its mean.
        self.register_buffer("values", torch.linalg.solve(shapes, returns), persistent=False)
        # As plain numbers: to read them from a device would stop it.
        self.limits = (float(returns[0]), float(returns[-1]))

    def logits(
        self, place: Float[Tensor, "*rows"], own: Float[Tensor, "*rows K"]
    ) -> Float[Tensor, "*rows K"]:
        """Logits of the bins: the peak around a place in symlog, and what each has beside it."""
        unit = math.sqrt(_FREEDOM) * _PEAK[self.kind] * self.width
        distance = (self.centres / unit).to(own.dtype) - (place / unit)[..., None]
        return torch.add(own, torch.log1p(distance.square()), alpha=-0.5 * (_FREEDOM + 1.0))

    def encode(self, target: Float[Tensor, "*rows"]) -> Float[Tensor, "*rows K"]:
        """Probabilities of the bins; returns beyond the limits count as the limits."""
        target = target.double().clamp(*self.limits)
        upper = torch.bucketize(target, self.returns).clamp(1, self.count - 1)
        below, above = self.returns[upper - 1], self.returns[upper]
        share = ((target - below) / (above - below))[..., None]
        return torch.lerp(self.shapes[upper - 1], self.shapes[upper], share)

    def decode(self, logits: Float[Tensor, "*rows K"]) -> Float[Tensor, "*rows"]:
        """The mean return of a distribution."""
        return torch.softmax(logits, -1) @ self.values.to(logits.dtype)


def _gaussians(centres: Float[Tensor, " K"], deviation: float) -> Float[Tensor, "K K"]:
    """A Gaussian around each centre, integrated over every bin."""
    width = centres[1] - centres[0]
    edges = torch.cat((centres[:1] - width / 2, centres + width / 2))
    below = torch.erf((edges - centres[:, None]) / (deviation * math.sqrt(2.0)))
    mass = below.diff(dim=-1)
    return mass / mass.sum(-1, keepdim=True)


@dataclass(frozen=True)
class BinnedValue:
    """Predictions [C, M, G] that may still know the distributions they are the means of.

    `normalised` is symlog in units of its deviation over the targets (PopArt's statistics): the
    actor then weighs relative gains, task by task, whatever the size of rewards. A value under a
    policy is a mean of such numbers over actions, not the symlog of the mean return: close to 0
    that would multiply whatever is wrong with large returns.
    """

    raw: Float[Tensor, "C M G"]
    symlogs: Float[Tensor, "C M G"]
    bins: ReturnBins
    popart: PopArt
    logits: Float[Tensor, "C M G K"] | None = None

    @classmethod
    def of(
        cls,
        place: Float[Tensor, "C M G"],
        own: Float[Tensor, "C M G K"],
        bins: ReturnBins,
        popart: PopArt,
    ) -> BinnedValue:
        """The value that a critic's outputs stand for; its place is on PopArt's scale."""
        logits = bins.logits(popart.denormalise(place), own)
        raw = bins.decode(logits)
        return cls(raw, symlog(raw), bins, popart, logits)

    @property
    def normalised(self) -> Float[Tensor, "C M G"]:
        return self.popart.normalise(self.symlogs)

    def mixed(self, values: Sequence[Value], mix: Mix) -> BinnedValue:
        """Values of several actions as one; the distributions are lost."""
        several = [value for value in values if isinstance(value, BinnedValue)]
        raw = mix(torch.stack([value.raw for value in several]))
        symlogs = mix(torch.stack([value.symlogs for value in several]))
        return BinnedValue(raw, symlogs, self.bins, self.popart)

    def loss(self, target: Float[Tensor, "M G"]) -> Float[Tensor, "C M G"]:
        """Cross-entropy with the target's bins."""
        assert self.logits is not None, "a mean over actions has no distribution"
        want = self.bins.encode(target).to(self.logits.dtype)
        return -(want * torch.log_softmax(self.logits, -1)).sum(-1)
