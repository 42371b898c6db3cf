"""The three loss terms, per valid transition and discount."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from amago.nets.distributions import ActionDistribution
from amago.nets.value import Value


def critic_loss(value: Value, target: Float[Tensor, "M G"]) -> Float[Tensor, "M G"]:
    """Mean error of the ensemble on the value's own scale [AMAGO eq. 2]."""
    return value.loss(target).mean(0)


def policy_gradient_loss(expected: Value) -> Float[Tensor, "M G"]:
    """-(normalised Q(s, π(s))), least of all critics [AMAGO eq. 1]."""
    return -expected.normalised.amin(0)


def filtered_bc_loss(
    policy: ActionDistribution, action: Tensor, weight: Float[Tensor, "M G"]
) -> Float[Tensor, "M G"]:
    """-f(s, a)·log π(a|s) [AMAGO eq. 6]."""
    return -weight * policy.log_prob(action[:, None])


@torch.no_grad()
def filter_weight(
    taken: Value, baseline: Value, rule: Callable[[Tensor], Tensor]
) -> Float[Tensor, "M G"]:
    """The filter applied to A = mean Q(s, a) - mean V(s) [AMAGO eq. 4, 5]."""
    return rule(taken.normalised.mean(0) - baseline.normalised.mean(0))
