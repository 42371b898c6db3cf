"""Ensembles of critics, read at an action or under a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from amago.nets.distributions import ActionDistribution, FlooredCategorical
from amago.nets.layers import EnsembleLinear, symlog
from amago.nets.settings import HeadSettings
from amago.nets.value import PopArt, ScalarValue
from amago.types import ActionSpec


@runtime_checkable
class ActionValues(Protocol):
    """Critics that have seen M states and can be asked about actions."""

    def at(self, action: Tensor) -> ScalarValue:
        """Values of the actions [M, A] that were taken."""

    def under(self, policy: ActionDistribution, num_samples: int = 1) -> ScalarValue:
        """Expected values of a policy's actions: exact where possible, else sampled."""

    def detached(self) -> ActionValues:
        """The same values for the actor: no gradient to critics or state."""


class DiscreteCritics(nn.Module):
    """State → the values of all actions at all discounts."""

    def __init__(
        self, state_dim: int, action: ActionSpec, num_discounts: int, settings: HeadSettings
    ) -> None:
        super().__init__()
        self.num_critics = settings.num_critics
        self.shape = (num_discounts, action.size)
        sizes = (state_dim, *settings.critic_hidden, num_discounts * action.size)
        self.layers = _ensemble(settings.num_critics, sizes)

    def forward(
        self,
        state: Float[Tensor, "M D"],
        popart: PopArt,
        members: Int[Tensor, " chosen"] | None = None,
    ) -> ActionValues:
        count = self.num_critics if members is None else len(members)
        *hidden, last = self.layers
        x = state.expand(count, -1, -1)
        for layer in hidden:
            x = F.leaky_relu_(layer(x, members))
        table = last(x, members).view(count, len(state), *self.shape)
        return DiscreteValues(table, popart)

    @torch.no_grad()
    def rescale(self, scale: Float[Tensor, " G"], shift: Float[Tensor, " G"]) -> None:
        """Map every output to scale·output + shift, discount by discount."""
        _rescale(
            self.layers[-1],
            scale.repeat_interleave(self.shape[1]),
            shift.repeat_interleave(self.shape[1]),
        )


@dataclass(frozen=True)
class DiscreteValues:
    table: Float[Tensor, "C M G A"]
    popart: PopArt

    def at(self, action: Float[Tensor, "M A"]) -> ScalarValue:
        index = action.argmax(-1)[None, :, None, None].expand(*self.table.shape[:3], 1)
        return ScalarValue(self.table.gather(-1, index)[..., 0], self.popart)

    def under(self, policy: ActionDistribution, num_samples: int = 1) -> ScalarValue:
        assert isinstance(policy, FlooredCategorical)
        return ScalarValue((self.table * policy.probs).sum(-1), self.popart)

    def detached(self) -> ActionValues:
        return replace(self, table=self.table.detach())


class ContinuousCritics(nn.Module):
    """[state, action, symlog(1/(1-γ))] → the value at that discount."""

    horizons: Tensor

    def __init__(
        self,
        state_dim: int,
        action: ActionSpec,
        discounts: Sequence[float],
        settings: HeadSettings,
    ) -> None:
        super().__init__()
        self.state_dim, self.num_critics = state_dim, settings.num_critics
        # Each discount has output weights of its own, so that PopArt can rescale it alone.
        sizes = (state_dim + action.size + 1, *settings.critic_hidden, len(discounts))
        self.layers = _ensemble(settings.num_critics, sizes)
        horizons = 1.0 / (1.0 - torch.tensor(discounts, dtype=torch.float64))
        self.register_buffer("horizons", symlog(horizons).float())

    def forward(
        self,
        state: Float[Tensor, "M D"],
        popart: PopArt,
        members: Int[Tensor, " chosen"] | None = None,
    ) -> ActionValues:
        return ContinuousValues(self, state, popart, members, detach=False)

    def value(
        self,
        state: Float[Tensor, "M D"],
        action: Float[Tensor, "M G A"],
        members: Int[Tensor, " chosen"] | None,
        detach: bool,
    ) -> Float[Tensor, "C M G"]:
        """The state's share of the first layer is the same for all discounts: once is enough."""
        first, *hidden, last = self.layers
        assert isinstance(first, EnsembleLinear)
        weight, bias = first.parameters_of(members, detach)
        shape = (len(weight), *action.shape[:2])  # [C, M, G]
        horizon = self.horizons.to(action.dtype)[None, :, None].expand(*action.shape[:2], 1)
        rest = torch.cat((action, horizon), -1).flatten(0, 1).expand(len(weight), -1, -1)
        from_state = torch.baddbmm(
            bias, state.expand(len(weight), -1, -1), weight[:, : self.state_dim]
        )
        from_rest = torch.bmm(rest, weight[:, self.state_dim :])
        x = F.leaky_relu_(from_rest.view(*shape, -1) + from_state[:, :, None]).flatten(1, 2)
        for layer in hidden:
            x = F.leaky_relu_(layer(x, members, detach))
        # Every discount's column is computed for every row and the diagonal kept: a few columns
        # more of one matrix product cost less than a gathered product per discount.
        square = last(x, members, detach).view(*shape, shape[-1])
        values: Tensor = square.diagonal(dim1=-2, dim2=-1)
        return values

    @torch.no_grad()
    def rescale(self, scale: Float[Tensor, " G"], shift: Float[Tensor, " G"]) -> None:
        """Map every output to scale·output + shift, discount by discount."""
        _rescale(self.layers[-1], scale, shift)


@dataclass(frozen=True)
class ContinuousValues:
    critics: ContinuousCritics
    state: Float[Tensor, "M D"]
    popart: PopArt
    members: Int[Tensor, " chosen"] | None
    detach: bool

    def at(self, action: Float[Tensor, "M A"]) -> ScalarValue:
        tiled = action[:, None].expand(-1, len(self.critics.horizons), -1)
        return self._value(tiled)

    def under(self, policy: ActionDistribution, num_samples: int = 1) -> ScalarValue:
        outputs = [self._value(policy.sample()).normalised for _ in range(num_samples)]
        return ScalarValue(torch.stack(outputs).mean(0), self.popart)

    def detached(self) -> ActionValues:
        return replace(self, state=self.state.detach(), detach=True)

    def _value(self, action: Float[Tensor, "M G A"]) -> ScalarValue:
        output = self.critics.value(self.state, action, self.members, self.detach)
        return ScalarValue(output, self.popart)


def build_critics(
    state_dim: int, action: ActionSpec, discounts: Sequence[float], settings: HeadSettings
) -> DiscreteCritics | ContinuousCritics:
    if action.kind == "discrete":
        return DiscreteCritics(state_dim, action, len(discounts), settings)
    return ContinuousCritics(state_dim, action, discounts, settings)


def _rescale(layer: nn.Module, scale: Tensor, shift: Tensor) -> None:
    assert isinstance(layer, EnsembleLinear)
    scale, shift = scale.to(layer.bias.dtype), shift.to(layer.bias.dtype)
    layer.weight.mul_(scale)
    layer.bias.mul_(scale).add_(shift)


def _ensemble(members: int, sizes: Sequence[int]) -> nn.ModuleList:
    return nn.ModuleList(
        EnsembleLinear(members, size_in, size_out) for size_in, size_out in pairwise(sizes)
    )
