"""Which of the replay's actions are worth imitating."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

MAX_WEIGHT = 20.0
"""The exponential filter never weighs an action more than this."""


def binary_filter(advantage: Float[Tensor, "M G"]) -> Float[Tensor, "M G"]:
    """1 where the action was better than the policy's average [AMAGO eq. 5]."""
    return (advantage > 0).to(advantage.dtype)


def exponential_filter(advantage: Float[Tensor, "M G"]) -> Float[Tensor, "M G"]:
    """exp(advantage) on the normalised scale [CRR]."""
    return advantage.exp().clamp(max=MAX_WEIGHT)


def no_filter(advantage: Float[Tensor, "M G"]) -> Float[Tensor, "M G"]:
    """1 everywhere: behaviour cloning of all that happened [GCSL]."""
    return torch.ones_like(advantage)


FILTERS = {"binary": binary_filter, "exponential": exponential_filter, "none": no_filter}
