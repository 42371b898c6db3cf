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

from amago.nets.action import action_features
from amago.nets.bins import LEAST_STD, BinnedValue, ReturnBins
from amago.nets.distributions import ActionDistribution, FlooredCategorical
from amago.nets.factored import Candidates, FactoredCategorical
from amago.nets.layers import EnsembleLinear, symlog
from amago.nets.precision import mixed, widened
from amago.nets.settings import NEGATIVE_SLOPE, HeadSettings
from amago.nets.value import PopArt, ScalarValue, Value
from amago.types import ActionSpec


@runtime_checkable
class ActionValues(Protocol):
    """Critics that have seen M states and can be asked about actions."""

    def at(self, action: Tensor) -> Value:
        """Values of the agent actions [M, ...] that were taken."""

    def under(self, policy: ActionDistribution) -> Value:
        """Expected values of a policy's actions: exact where possible, else of one sample."""

    def detached(self) -> ActionValues:
        """The same values for the actor: no gradient to critics or state."""


class _DiscreteCritics(nn.Module):
    """State → the values of all actions at all discounts."""

    def __init__(
        self, state_dim: int, action: ActionSpec, num_discounts: int, settings: HeadSettings
    ) -> None:
        super().__init__()
        self.num_critics = settings.num_critics
        self.shape = (num_discounts, action.size)
        self.bins = _bins(settings)
        self.activate = _Activation(settings)
        width = num_discounts * action.size * (1 if self.bins is None else 1 + self.bins.count)
        self.layers = _ensemble(settings, (state_dim, *settings.hidden, width))

    def forward(
        self,
        state: Float[Tensor, "M D"],
        popart: PopArt,
        members: Int[Tensor, " chosen"] | None = None,
    ) -> ActionValues:
        count = self.num_critics if members is None else len(members)
        *hidden, last = self.layers
        x = state.expand(count, -1, -1)
        with mixed():
            for layer in hidden:
                x = self.activate(layer(x, members))
            output = torch.unflatten(widened(last(x, members)), -1, (*self.shape, -1))
        if self.bins is not None:
            return _BinnedDiscreteValues(output, self.bins, popart)
        return _DiscreteValues(output[..., 0], popart)

    def scaled(self, target: Float[Tensor, "M G"]) -> Float[Tensor, "M G"]:
        """Targets as PopArt's statistics take them in."""
        return target if self.bins is None else symlog(target)

    @torch.no_grad()
    def rescale(self, scale: Float[Tensor, " G"], shift: Float[Tensor, " G"]) -> None:
        """Map every output to scale·output + shift, discount by discount."""
        repeats = self.shape[1]
        scale, shift = scale.repeat_interleave(repeats), shift.repeat_interleave(repeats)
        if self.bins is not None:  # the place comes before the logits
            scale = F.pad(scale[:, None], (0, self.bins.count), value=1.0).flatten()
            shift = F.pad(shift[:, None], (0, self.bins.count)).flatten()
        _rescale(self.layers[-1], scale, shift)


@dataclass(frozen=True)
class _DiscreteValues:
    table: Float[Tensor, "C M G A"]
    popart: PopArt

    def at(self, action: Int[Tensor, " M"]) -> ScalarValue:
        index = action[None, :, None, None].expand(*self.table.shape[:3], 1)
        return ScalarValue(self.table.gather(-1, index)[..., 0], self.popart)

    def under(self, policy: ActionDistribution) -> ScalarValue:
        assert isinstance(policy, FlooredCategorical)
        return ScalarValue((self.table * policy.probs).sum(-1), self.popart)

    def detached(self) -> ActionValues:
        return replace(self, table=self.table.detach())


@dataclass(frozen=True)
class _BinnedDiscreteValues:
    output: Float[Tensor, "C M G A outputs"]
    bins: ReturnBins
    popart: PopArt

    def at(self, action: Int[Tensor, " M"]) -> BinnedValue:
        index = action[None, :, None, None, None]
        index = index.expand(*self.output.shape[:3], 1, self.output.shape[-1])
        output = self.output.gather(-2, index)[..., 0, :]
        return BinnedValue.of(output[..., 0], output[..., 1:], self.bins, self.popart)

    def under(self, policy: ActionDistribution) -> BinnedValue:
        assert isinstance(policy, FlooredCategorical)
        place = self.popart.denormalise(self.output[..., 0].mT).mT
        raw = self.bins.decode(self.bins.logits(place, self.output[..., 1:]))
        symlogs = (symlog(raw) * policy.probs).sum(-1)
        return BinnedValue((raw * policy.probs).sum(-1), symlogs, self.bins, self.popart)

    def detached(self) -> ActionValues:
        return replace(self, output=self.output.detach())


class _ContinuousCritics(nn.Module):
    """[state, features of the action, symlog(1/(1-γ))] → the value at that discount, for
    continuous, multi-discrete and multi-binary actions."""

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
        self.action = action
        self.bins = _bins(settings)
        self.activate = _Activation(settings)
        # Each discount has output weights of its own, so that PopArt can rescale it alone; the
        # logits of bins, which it leaves alone, are for all.
        width = len(discounts) + (0 if self.bins is None else self.bins.count)
        sizes = (state_dim + action.size + 1, *settings.hidden, width)
        self.layers = _ensemble(settings, sizes)
        horizons = 1.0 / (1.0 - torch.tensor(discounts, dtype=torch.float64))
        self.register_buffer("horizons", symlog(horizons).float())

    def forward(
        self,
        state: Float[Tensor, "M D"],
        popart: PopArt,
        members: Int[Tensor, " chosen"] | None = None,
    ) -> ActionValues:
        return _ContinuousValues(self, state, popart, members, detach=False)

    def value(
        self,
        state: Float[Tensor, "M D"],
        action: Float[Tensor, "M G A"],
        members: Int[Tensor, " chosen"] | None,
        detach: bool,
    ) -> Float[Tensor, "C M G *outputs"]:
        """Outputs at the features of actions: values, or places and logits of bins.

        The state's share of the first layer is the same for all discounts: once is enough.
        """
        with mixed():
            return widened(self._value(state, action, members, detach))

    def _value(
        self, state: Tensor, action: Tensor, members: Tensor | None, detach: bool
    ) -> Float[Tensor, "C M G *outputs"]:
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
        joined = from_rest.view(*shape, -1) + from_state[:, :, None]
        x = self.activate(joined).flatten(1, 2)
        for layer in hidden:
            x = self.activate(layer(x, members, detach))
        # Every discount's column is computed for every row and the diagonal kept: a few columns
        # more of one matrix product cost less than a gathered product per discount.
        output = last(x, members, detach).view(*shape, -1)
        values: Tensor = output[..., : shape[-1]].diagonal(dim1=-2, dim2=-1)
        if self.bins is None:
            return values
        return torch.cat((values[..., None], output[..., shape[-1] :]), -1)

    def scaled(self, target: Float[Tensor, "M G"]) -> Float[Tensor, "M G"]:
        """Targets as PopArt's statistics take them in."""
        return target if self.bins is None else symlog(target)

    @torch.no_grad()
    def rescale(self, scale: Float[Tensor, " G"], shift: Float[Tensor, " G"]) -> None:
        """Map every output to scale·output + shift, discount by discount."""
        if self.bins is not None:
            scale = F.pad(scale, (0, self.bins.count), value=1.0)
            shift = F.pad(shift, (0, self.bins.count))
        _rescale(self.layers[-1], scale, shift)


@dataclass(frozen=True)
class _ContinuousValues:
    critics: _ContinuousCritics
    state: Float[Tensor, "M D"]
    popart: PopArt
    members: Int[Tensor, " chosen"] | None
    detach: bool

    def at(self, action: Tensor) -> Value:
        features = action_features(action, self.critics.action, self.state.dtype)
        return self._value(features[:, None].expand(-1, len(self.critics.horizons), -1))

    def under(self, policy: ActionDistribution) -> Value:
        if isinstance(policy, FactoredCategorical):
            return self._over_candidates(policy)
        return self._value(policy.sample())

    def detached(self) -> ActionValues:
        return replace(self, state=self.state.detach(), detach=True)

    def _over_candidates(self, policy: FactoredCategorical) -> Value:
        """Every value of one random dimension; gradients reach the probabilities alone."""
        candidates = Candidates(policy)
        with torch.no_grad():
            values = [self._value(candidates.features(k)) for k in range(len(candidates))]
        return values[0].mixed(values, candidates.expectation)

    def _value(self, action: Float[Tensor, "M G A"]) -> Value:
        output = self.critics.value(self.state, action, self.members, self.detach)
        bins = self.critics.bins
        if bins is not None:
            return BinnedValue.of(output[..., 0], output[..., 1:], bins, self.popart)
        return ScalarValue(output, self.popart)


def build_popart(num_discounts: int, settings: HeadSettings) -> PopArt:
    """The scale of the critics' values: that of returns, or, with bins, of their symlog."""
    floor = {} if settings.critic == "scalar" else {"min_std": LEAST_STD}
    return PopArt(num_discounts, enabled=settings.popart, rate=settings.popart_rate, **floor)


def build_critics(
    state_dim: int, action: ActionSpec, discounts: Sequence[float], settings: HeadSettings
) -> _DiscreteCritics | _ContinuousCritics:
    if action.kind == "discrete":
        return _DiscreteCritics(state_dim, action, len(discounts), settings)
    return _ContinuousCritics(state_dim, action, discounts, settings)


class _Activation(nn.Module):
    """What follows each hidden layer of a critic."""

    def __init__(self, settings: HeadSettings) -> None:
        super().__init__()
        self.slope, self.layer_norm = NEGATIVE_SLOPE[settings.activation], settings.layer_norm

    def forward(self, x: Float[Tensor, "*rows H"]) -> Float[Tensor, "*rows H"]:
        if self.layer_norm:
            x = F.layer_norm(x, x.shape[-1:])
        return F.leaky_relu_(x, self.slope)


def _rescale(layer: nn.Module, scale: Tensor, shift: Tensor) -> None:
    assert isinstance(layer, EnsembleLinear)
    scale, shift = scale.to(layer.bias.dtype), shift.to(layer.bias.dtype)
    layer.weight.mul_(scale)
    layer.bias.mul_(scale).add_(shift)


def _bins(settings: HeadSettings) -> ReturnBins | None:
    if settings.critic == "scalar":
        return None
    return ReturnBins(settings.critic)


def _ensemble(settings: HeadSettings, sizes: Sequence[int]) -> nn.ModuleList:
    return nn.ModuleList(EnsembleLinear(settings.num_critics, *pair) for pair in pairwise(sizes))
