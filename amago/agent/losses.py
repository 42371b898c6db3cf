"""The three loss terms, per valid transition and discount."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from amago.nets.critic import ActionValues
from amago.nets.distributions import ActionDistribution
from amago.nets.value import ScalarValue


def critic_loss(value: ScalarValue, target: Float[Tensor, "M G"]) -> Float[Tensor, "M G"]:
    """Mean error of the ensemble on the value's own scale [AMAGO eq. 2]."""
    return value.loss(target).mean(0)


def policy_gradient_loss(expected: ScalarValue) -> Float[Tensor, "M G"]:
    """-(normalised Q(s, π(s))), least of all critics [AMAGO eq. 1]."""
    return -expected.normalised.amin(0)


def filtered_bc_loss(
    policy: ActionDistribution, action: Float[Tensor, "M A"], weight: Float[Tensor, "M G"]
) -> Float[Tensor, "M G"]:
    """-f(s, a)·log π(a|s) [AMAGO eq. 6]."""
    return -weight * policy.log_prob(action[:, None])


@torch.no_grad()
def filter_weight(
    values: ActionValues,
    policy: ActionDistribution,
    expected: ScalarValue,
    action: Float[Tensor, "M A"],
    num_samples: int,
    rule: Callable[[Tensor], Tensor],
) -> Float[Tensor, "M G"]:
    """The filter applied to A = mean Q(s, a) - mean V(s) [AMAGO eq. 4, 5].

    `expected`, the policy's value from one sample, serves as V(s) unless more are asked for.
    """
    if num_samples > 1:
        expected = values.under(policy, num_samples)
    advantage = values.at(action).normalised.mean(0) - expected.normalised.mean(0)
    return rule(advantage)
