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
    target: Float[Tensor, "M G"],
    reward: Float[Tensor, " M"],
    done: Bool[Tensor, " M"],
    final: Bool[Tensor, " M"],
    discounts: Float[Tensor, " G"],
    num_steps: int,
) -> Float[Tensor, "M G"]:
    """Targets that add up to n rewards of the window before they bootstrap.

    `target` are the one-step targets of transitions that lie window after window; `final`
    marks the last one of each. A sum ends early at a terminal, without bootstrapping, and at
    the end of its window, with it, whatever ended that. The start of a further trial ends
    nothing: the return goes on through it, as memory does. Rewards after the first were earned
    by whoever collected them: there is no correction for that.
    """
    goes_on = ~(done | final)[:-1, None]
    longer = target
    for _ in range(num_steps - 1):
        # One more step: the reward, then what the next transition promises.
        promised = reward[:-1, None] + discounts * longer[1:]
        longer = torch.cat((torch.where(goes_on, promised, target[:-1]), target[-1:]))
    return longer


def tree_backup_target(
    target: Float[Tensor, "M G"],
    next_taken: Float[Tensor, "M G"],
    weight: Float[Tensor, "M G"],
) -> Float[Tensor, "M G"]:
    """y[t] = target[t] + weight[t]·(y[t+1] - Q(s[t+1], a[t+1])) [Precup et al. 2000, tree backup].

    `target` are the one-step targets of transitions that lie window after window, `next_taken` the
    target critics' value of the action that was taken next. `weight` is γ·λ times how far the
    policy agrees with that action (its probability, where it has one), and 0 at terminals and at
    the end of a window: whatever the policy would not have done is bootstrapped as before.
    """
    return _recurrence(target - weight * next_taken, weight)


def _recurrence(base: Float[Tensor, "M G"], weight: Float[Tensor, "M G"]) -> Float[Tensor, "M G"]:
    """x[t] = base[t] + weight[t]·x[t+1], for all t at once: each round doubles the reach."""
    reach = 1
    while reach < len(base):
        ahead, onward = _ahead(base, reach), _ahead(weight, reach)
        base, weight = base + weight * ahead, weight * onward
        reach *= 2
    return base


def _ahead(x: Float[Tensor, "M G"], rows: int) -> Float[Tensor, "M G"]:
    """What lies some rows further on; 0 after the end."""
    return torch.cat((x[rows:], torch.zeros_like(x[:rows])))


def draw_critics(num_critics: int, num_drawn: int, device: torch.device) -> Tensor:
    """Indices of the critics of one update's target, without replacement."""
    if device.type == "cpu":
        return torch.randperm(num_critics)[:num_drawn]
    # A permutation of few numbers is made on the CPU, and copying it would stop a GPU.
    return torch.rand(num_critics, device=device).argsort()[:num_drawn]
