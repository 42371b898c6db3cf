"""What the critics should have said."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def td_target(
    reward: Float[Tensor, " M"],
    done: Bool[Tensor, " M"],
    next_values: Float[Tensor, "chosen M G"],
    discounts: Float[Tensor, " G"],
) -> Float[Tensor, "M G"]:
    """r + γ·(1 - done)·min over the drawn critics [AMAGO eq. 2, REDQ alg. 1]."""
    alive = (~done).to(reward.dtype)
    return reward[:, None] + discounts * alive[:, None] * next_values.amin(0)


def draw_critics(num_critics: int, num_drawn: int, device: torch.device) -> Tensor:
    """Indices of the critics of one update's target, without replacement."""
    return torch.randperm(num_critics)[:num_drawn].to(device)
