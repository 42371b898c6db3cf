"""Classification critics whose targets are their own values: exact, in time, on a fair scale."""

from __future__ import annotations

import copy

import pytest
import torch
from test_agent_helpers import tiny_config
from test_agent_helpers import tiny_spec as spec_of
from torch import nn

from amago.agent.agent import Agent
from amago.nets.bins import BinnedValue, ReturnBins
from amago.nets.critic import build_critics, build_popart
from amago.nets.settings import HeadSettings
from amago.nets.value import PopArt, ScalarValue
from amago.types import ActionSpec

KINDS = ["two_hot", "hl_gauss"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reward", [0.01, 1.0, 10.0])
def test_values_of_a_long_chain_are_its_discounted_rewards(kind, reward):
    """Every value goes through the bins a hundred times: any bias of theirs would add up."""
    bins, discount = ReturnBins(kind), 0.998
    value, want = torch.zeros(1, dtype=torch.float64), 0.0
    for _ in range(100):
        value = reward + discount * bins.decode(bins.encode(value).clamp(min=1e-300).log())
        want = reward + discount * want
    assert float(value) == pytest.approx(want, rel=1e-9)


class Regression:
    """Critics of one discount and 32 states, taught as an update teaches them."""

    def __init__(self, kind: str) -> None:
        torch.manual_seed(0)
        settings = HeadSettings(
            hidden=(64, 64), num_critics=1, layer_norm=True, critic=kind, popart_rate=0.005
        )
        self.critics = build_critics(16, ActionSpec("discrete", 2), [0.9], settings)
        self.target = copy.deepcopy(self.critics).requires_grad_(False)
        self.popart = build_popart(1, settings)
        self.states, self.action = torch.randn(32, 16), torch.zeros(32, dtype=torch.int64)
        self.optimizer = torch.optim.AdamW(self.critics.parameters(), lr=1e-3, betas=(0.9, 0.95))

    def value(self, critics: nn.Module) -> torch.Tensor:
        return critics(self.states, self.popart).at(self.action).raw.detach()[0]

    def teach(self, target: torch.Tensor) -> None:
        move = self.popart.update(self.critics.scaled(target))
        self.critics.rescale(*move)
        self.target.rescale(*move)
        loss = self.critics(self.states, self.popart).at(self.action).loss(target).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            pairs = list(self.target.parameters()), list(self.critics.parameters())
            torch._foreach_lerp_(*pairs, 0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_critics_follow_targets_that_grow_as_bootstrapping_makes_them(kind):
    """One per cent an update; what never was a target has to be reached in time."""
    regression = Regression(kind)
    for update in range(200):
        target = torch.full((32, 1), 10.0 * 1.01**update)
        regression.teach(target)
    assert float(regression.value(regression.critics).mean()) == pytest.approx(72.4, rel=0.3)


@pytest.mark.parametrize("kind", KINDS)
def test_bootstrapped_values_arrive_and_stay(kind):
    """Ten a step for ever at a discount of .8: a value of fifty in every state."""
    regression = Regression(kind)
    found = []
    for update in range(350):
        following = regression.value(regression.target)[torch.randperm(32)]
        regression.teach(10.0 + 0.8 * following)
        if update >= 300:
            found.append(float(regression.value(regression.critics).mean()))
    assert min(found) > 45.0 and max(found) < 55.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_gains_count_in_units_of_the_spread_of_returns_whatever_their_size(kind, scale):
    """As with scalar critics: returns of 400 ± 8 make a gain of 4 a half, not a hundredth."""
    targets = scale * (400.0 + 8.0 * torch.tensor([-1.0, 1.0]).repeat(32)[:, None])
    bins, popart, scalar = ReturnBins(kind), PopArt(1), PopArt(1)
    popart.update(torch.log1p(targets))
    scalar.update(targets)
    returns = scale * torch.tensor([[[400.0]], [[404.0]]]).double()
    logits = bins.encode(returns).clamp(min=1e-300).log()
    place = popart.normalise(torch.zeros_like(returns))
    own = logits - bins.logits(torch.zeros_like(returns), torch.zeros_like(logits))
    binned = BinnedValue.of(place, own, bins, popart)
    plain = ScalarValue(scalar.normalise(returns), scalar)
    gains = [float(value.normalised[1] - value.normalised[0]) for value in (binned, plain)]
    assert gains[1] == pytest.approx(0.5)
    assert gains[0] == pytest.approx(gains[1], rel=0.05)


@pytest.mark.parametrize("critic", KINDS)
@pytest.mark.parametrize("kind", ["discrete", "continuous", "multi_discrete"])
def test_no_prediction_moves_when_the_statistics_of_targets_do(kind, critic):
    torch.manual_seed(0)
    agent = Agent(spec_of(kind), tiny_config(heads__critic=critic)).double()
    discounts = len(agent.discounts)
    agent.update_scale(40.0 + torch.randn(50, discounts).double())
    state = torch.randn(7, agent.memory.output_dim, dtype=torch.float64)
    dtype = torch.float64 if kind == "continuous" else torch.int64
    action = torch.zeros(7, *agent.spec.action.shape, dtype=dtype)

    def read():
        value = agent.critics(state, agent.popart).at(action)
        return value.raw.detach(), value.normalised.detach()

    (before, was), mean = read(), agent.popart.statistics()[0]
    agent.popart.rate = 0.3
    agent.update_scale(900.0 + 100.0 * torch.randn(50, discounts).double())
    after, now = read()
    assert bool((agent.popart.statistics()[0] > mean + 0.5).all())
    torch.testing.assert_close(after, before)
    assert float((now - was).abs().min()) > 0.1
