"""State → one action distribution per discount."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from amago.nets.distributions import ActionDistribution, FlooredCategorical, TanhGaussian
from amago.nets.factored import FactoredCategorical, Factors
from amago.nets.layers import mlp
from amago.nets.precision import mixed, widened
from amago.nets.settings import HeadSettings
from amago.types import ActionSpec


class Actor(nn.Module):
    """One MLP whose output layer holds the policies of all discounts."""

    def __init__(
        self, state_dim: int, action: ActionSpec, num_discounts: int, settings: HeadSettings
    ) -> None:
        super().__init__()
        self.action, self.num_discounts = action, num_discounts
        self.floor = settings.probability_floor
        self.width = 2 * action.size if action.kind == "continuous" else action.size
        factored = action.kind in ("multi_discrete", "multi_binary")
        self.factors = Factors(action) if factored else None
        sizes = (state_dim, *settings.hidden)
        self.trunk = mlp(sizes, activate_last=True, activation=settings.activation)
        self.out = nn.Linear(settings.hidden[-1], num_discounts * self.width)

    def forward(
        self, state: Float[Tensor, "M D"], mask: Bool[Tensor, "M A"] | None = None
    ) -> ActionDistribution:
        """Distributions over [M, G, A]."""
        with mixed():
            flat = widened(self.out(self.trunk(state)))
        parameters = torch.unflatten(flat, -1, (self.num_discounts, self.width))
        return self._distribution(parameters, None if mask is None else mask[:, None])

    def at_discount(
        self, state: Float[Tensor, "N D"], index: int, mask: Bool[Tensor, "N A"] | None = None
    ) -> ActionDistribution:
        """The policy of one discount alone, over [N, A]: what acting needs."""
        rows = slice(index * self.width, (index + 1) * self.width)
        parameters = F.linear(self.trunk(state), self.out.weight[rows], self.out.bias[rows])
        return self._distribution(parameters, mask)

    def _distribution(self, parameters: Tensor, mask: Tensor | None) -> ActionDistribution:
        if mask is not None:
            mask = mask.expand(parameters.shape)
        if self.factors is not None:
            return FactoredCategorical(self.factors, parameters, self.floor, mask)
        if self.action.kind == "discrete":
            return FlooredCategorical(parameters, self.floor, mask)
        return TanhGaussian(parameters)
