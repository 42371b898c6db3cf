"""Distributions of agent actions (see ActionSpec), for any leading dimensions."""

from __future__ import annotations

import copy
import math
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from amago.nets.place import draw

LOG_STD_RANGE = (-5.0, 2.0)
_ACTION_CLAMP = 0.99
"""Continuous actions are pulled inside ±this before tanh is inverted."""


@runtime_checkable
class ActionDistribution(Protocol):
    """Samples and scores agent actions: ids, bits, or vectors in [-1, 1]."""

    def sample(self, generator: torch.Generator | None = None) -> Tensor: ...

    def mode(self) -> Tensor: ...

    def log_prob(self, action: Tensor) -> Tensor:
        """Logarithms of the actions' probabilities, without the floor where there is one.

        The actions' leading dimensions may be 1 where the distribution's are not.
        """

    def agreement(self, action: Tensor) -> Tensor:
        """How far the policy would have taken the actions itself, in 0..1."""

    def entropy(self) -> Tensor: ...


def of_rows(policy: ActionDistribution, rows: slice) -> ActionDistribution:
    """The distributions of some rows of [N, ...] alone."""
    part = copy.copy(policy)
    for name, value in vars(policy).items():
        if isinstance(value, Tensor):
            setattr(part, name, value[rows])
    return part


class FlooredCategorical:
    """p = (1 - n·f)·softmax + f over the n allowed actions, 0 elsewhere."""

    def __init__(
        self,
        logits: Float[Tensor, "*rows A"],
        floor: float = 0.0,
        mask: Bool[Tensor, "*rows A"] | None = None,
    ) -> None:
        size = logits.shape[-1]
        floor = min(floor, 0.1 / size)
        self._logits = logits
        if mask is None:
            self.probs = torch.softmax(logits, -1)
            if floor:
                self.probs = (1.0 - size * floor) * self.probs + floor
        else:
            # A row that allows nothing cannot be obeyed: it counts as all allowed.
            mask = mask | ~mask.any(-1, keepdim=True)
            self.probs = floored_probabilities(logits, floor, mask)
            self._logits = logits.masked_fill(~mask, -torch.inf)

    def sample(self, generator: torch.Generator | None = None) -> Int[Tensor, "*rows"]:
        return categorical_sample(self.probs, generator)

    def mode(self) -> Int[Tensor, "*rows"]:
        return self.probs.argmax(-1)

    def log_prob(self, action: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        return chosen(finite_log_softmax(self._logits), action)

    def agreement(self, action: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Their probability."""
        return self.log_prob(action).exp()

    def entropy(self) -> Float[Tensor, "*rows"]:
        return entropy(self.probs)


def finite_log_softmax(logits: Float[Tensor, "*rows A"]) -> Float[Tensor, "*rows A"]:
    """Logarithms of probabilities, of which none is 0; logits may be -∞."""
    return torch.log_softmax(logits, -1).clamp(min=math.log(torch.finfo(logits.dtype).tiny))


def entropy(probs: Float[Tensor, "*rows A"]) -> Float[Tensor, "*rows"]:
    """-Σ p·log p, 0 where p is."""
    tiny = torch.finfo(probs.dtype).tiny
    return -(probs * probs.clamp(min=tiny).log()).sum(-1)


def floored_probabilities(
    logits: Float[Tensor, "*rows A"],
    floor: float | Tensor,
    allowed: Bool[Tensor, "*rows A"],
) -> Float[Tensor, "*rows A"]:
    """(1 - n·f)·softmax + f over the n allowed actions, at least one in every row."""
    soft = torch.softmax(logits.masked_fill(~allowed, -torch.inf), -1)
    count = allowed.sum(-1, keepdim=True)
    return torch.where(allowed, (1.0 - count * floor) * soft + floor, 0.0)


def chosen(table: Float[Tensor, "*rows A"], ids: Int[Tensor, "..."]) -> Float[Tensor, "*rows"]:
    """The entry of every row that an id names; ids may have fewer rows, to be repeated."""
    return table.gather(-1, ids.expand(table.shape[:-1])[..., None])[..., 0]


def categorical_sample(
    probs: Float[Tensor, "*rows A"], generator: torch.Generator | None = None
) -> Int[Tensor, "*rows"]:
    """One id per row; an action of probability 0 is never drawn."""
    cumulative = probs.detach().cumsum(-1)
    dtype, device = cumulative.dtype, cumulative.device
    uniform = draw(
        lambda s: torch.rand(s, generator=generator, dtype=dtype, device=device),
        cumulative.shape[:-1],
    )
    # Scaling by the last entry keeps rounding from choosing an action past the end.
    return (cumulative <= (uniform * cumulative[..., -1])[..., None]).sum(-1)


class TanhGaussian:
    """tanh of a Gaussian; its log standard deviation is squashed into LOG_STD_RANGE."""

    def __init__(self, parameters: Float[Tensor, "*rows twoA"]) -> None:
        self.mean, raw = parameters.chunk(2, -1)
        low, high = LOG_STD_RANGE
        self.log_std = low + 0.5 * (high - low) * (torch.tanh(raw) + 1.0)

    def sample(self, generator: torch.Generator | None = None) -> Float[Tensor, "*rows A"]:
        """Reparameterised: gradients reach mean and deviation."""
        dtype, device = self.mean.dtype, self.mean.device
        noise = draw(
            lambda s: torch.randn(s, generator=generator, dtype=dtype, device=device),
            self.mean.shape,
        )
        return torch.tanh(self.mean + self.log_std.exp() * noise)

    def mode(self) -> Float[Tensor, "*rows A"]:
        return torch.tanh(self.mean)

    def log_prob(self, action: Float[Tensor, "... A"]) -> Float[Tensor, "..."]:
        """Actions at the bounds teach the mean alone.

        Exploration clipped them there: how far out they were is not known, and a deviation that
        explains them would grow with the noise.
        """
        raw = torch.atanh(action.clamp(-_ACTION_CLAMP, _ACTION_CLAMP))
        at_bound = action.abs() >= _ACTION_CLAMP
        log_std = torch.where(at_bound, self.log_std.detach(), self.log_std)
        scaled = (raw - self.mean) * torch.exp(-log_std)
        gaussian = -0.5 * scaled.square() - log_std - 0.5 * math.log(2 * math.pi)
        return (gaussian - _log_tanh_slope(raw)).sum(-1)

    def agreement(self, action: Float[Tensor, "... A"]) -> Float[Tensor, "..."]:
        """Their density beside that of the mode: the geometric mean over dimensions.

        At a bound exploration may have clipped an action from anywhere beyond: the distance
        counts from the nearest of these.
        """
        raw = torch.atanh(action.clamp(-_ACTION_CLAMP, _ACTION_CLAMP))
        distance = raw - self.mean
        beyond = (action.abs() >= _ACTION_CLAMP) & (distance * raw < 0)
        scaled = torch.where(beyond, 0.0, distance * torch.exp(-self.log_std))
        return torch.exp(-0.5 * scaled.square().mean(-1))

    def entropy(self) -> Float[Tensor, "*rows"]:
        """Of the Gaussian before tanh: exact and without sampling, an upper bound."""
        return (self.log_std + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)


def _log_tanh_slope(x: Tensor) -> Tensor:
    """log(1 - tanh(x)²), without cancellation."""
    return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))
