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


def n_step_target(
    target: Float[Tensor, "B L G"],
    reward: Float[Tensor, "B L"],
    done: Bool[Tensor, "B L"],
    valid: Bool[Tensor, "B L"],
    discounts: Float[Tensor, " G"],
    num_steps: int,
) -> Float[Tensor, "B L G"]:
    """Targets that add up to n rewards of the window before they bootstrap.

    `target` [B, L, G] are the one-step targets. A sum ends early at a terminal, without
    bootstrapping, and at the end of the valid rows, with it, whatever ended them. The start of
    a further trial ends nothing: the return goes on through it, as memory does. Rewards after
    the first were earned by whoever collected them: there is no correction for that.
    """
    ahead = (valid[:, 1:] & ~done[:, :-1])[..., None]
    longer = target
    for _ in range(num_steps - 1):
        # One more step: the reward, then what the next transition promises.
        promised = reward[:, :-1, None] + discounts * longer[:, 1:]
        longer = torch.cat((torch.where(ahead, promised, target[:, :-1]), target[:, -1:]), 1)
    return longer


def draw_critics(num_critics: int, num_drawn: int, device: torch.device) -> Tensor:
    """Indices of the critics of one update's target, without replacement."""
    return torch.randperm(num_critics)[:num_drawn].to(device)
