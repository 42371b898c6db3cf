"""Classification critics: encodings, means, losses, and the same update as with scalars."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from test_agent_helpers import predictable_samples, random_batch, tiny_config, tiny_learner
from test_agent_helpers import tiny_spec as spec_of

from amago.agent.agent import Agent
from amago.nets.bins import BinnedValue, ReturnBins
from amago.nets.critic import _BinnedDiscreteValues, build_popart
from amago.nets.distributions import FlooredCategorical
from amago.nets.layers import symlog
from amago.nets.value import PopArt

KINDS = ["two_hot", "hl_gauss"]
LIMITS = (-20_000.0, 20_000.0)


def logits_of(probabilities):
    return probabilities.clamp(min=1e-300).log()


def outputs_of(logits, bins):
    """What a critic must say, its place at 0, to give these logits: the place and the rest."""
    place = logits.new_zeros(logits.shape[:-1])
    return place, logits - bins.logits(place, torch.zeros_like(logits))


@pytest.mark.parametrize("limits", [LIMITS, (-1.0, 50.0)])
@pytest.mark.parametrize("kind", KINDS)
def test_encodings_are_distributions_that_decode_to_their_return(kind, limits):
    bins = ReturnBins(kind, 101, limits)
    low, high = limits
    returns = torch.tensor([low, 0.6 * low, -1.0, 0.0, 0.1, 1.0, 7.3, 0.7 * high, high]).double()
    returns = returns.clamp(low, high)
    coded = bins.encode(returns)
    assert bool((coded >= 0).all())
    torch.testing.assert_close(coded.sum(-1), torch.ones(9).double())
    got = bins.decode(logits_of(coded))
    np.testing.assert_allclose(got.numpy(), returns.numpy(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        bins.decode(logits_of(bins.encode(torch.tensor([low * 9, high * 9])))).numpy(),
        limits, rtol=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_centres_come_out_as_they_went_in_and_means_of_targets_are_preserved(kind):
    """The mean over random targets is what a critic converges to; bias would compound."""
    bins = ReturnBins(kind, 65, LIMITS)
    centres = torch.sign(bins.centres) * torch.expm1(bins.centres.abs())
    got = bins.decode(logits_of(bins.encode(centres)))
    np.testing.assert_allclose(got.numpy(), centres.numpy(), rtol=1e-6, atol=1e-6)
    pair = centres[[35, 60]]
    mixed = bins.encode(pair).mean(0)
    assert float(bins.decode(logits_of(mixed))) == pytest.approx(float(pair.mean()), rel=1e-6)
    rare = torch.tensor([0.0, 700.0]).double()
    mixed = torch.tensor([0.9998, 0.0002]).double() @ bins.encode(rare)
    assert float(bins.decode(logits_of(mixed))) == pytest.approx(0.14, rel=1e-6)


def test_two_hot_shares_a_return_between_its_neighbours():
    bins = ReturnBins("two_hot", 3, (-math.expm1(2.0), math.expm1(2.0)))
    high = math.expm1(2.0)
    coded = bins.encode(torch.tensor([0.25 * high, -high, 0.0, high]).double())
    want = [[0, 0.75, 0.25], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    np.testing.assert_allclose(coded.numpy(), want, atol=1e-12)


def test_hl_gauss_is_a_gaussian_integrated_over_bins_and_between_centres_a_mixture_of_two():
    bins = ReturnBins("hl_gauss", 41, (-math.expm1(4.0), math.expm1(4.0)))
    width = 0.2
    sigma = 0.75 * width
    edges = [-4 + width * (k - 0.5) for k in range(42)]

    def around(z):
        below = [0.5 * (1 + math.erf((edge - z) / (sigma * math.sqrt(2)))) for edge in edges]
        mass = np.diff(below)
        return mass / mass.sum()

    low, high = math.expm1(1.4), math.expm1(1.6)
    got = bins.encode(torch.tensor([low, 0.75 * low + 0.25 * high], dtype=torch.float64))
    np.testing.assert_allclose(got[0].numpy(), around(1.4), atol=1e-9)
    np.testing.assert_allclose(got[1].numpy(), 0.75 * around(1.4) + 0.25 * around(1.6), atol=1e-9)


def test_a_place_carries_a_peak_of_mass_along():
    """Student's t of three degrees of freedom, half a bin wide."""
    bins = ReturnBins("two_hot", 41, (-math.expm1(4.0), math.expm1(4.0)))
    place = torch.tensor([1.5, -2.0]).double()
    got = bins.logits(place, torch.zeros(2, 41, dtype=torch.float64))
    for row, z in enumerate((1.5, -2.0)):
        centres = np.linspace(-4, 4, 41)
        want = -2.0 * np.log1p(((centres - z) / 0.1) ** 2 / 3.0)
        np.testing.assert_allclose(got[row].numpy(), want, atol=1e-9)
    np.testing.assert_allclose(symlog(bins.decode(got)).numpy(), place.numpy(), atol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_a_cross_entropy_and_least_at_the_target(kind):
    bins = ReturnBins(kind, 21, (-100.0, 100.0))
    target = torch.tensor([[3.0, -40.0]], dtype=torch.float64)
    torch.manual_seed(0)
    logits = torch.randn(2, 1, 2, 21, dtype=torch.float64)
    value = BinnedValue.of(*outputs_of(logits, bins), bins, PopArt(2))
    want = bins.encode(target)[0]
    for c in range(2):
        for g in range(2):
            x = logits[c, 0, g]
            slow = sum(
                float(want[g, k]) * (math.log(float(x.exp().sum())) - float(x[k]))
                for k in range(21)
            )
            assert float(value.loss(target)[c, 0, g]) == pytest.approx(slow)
    exact = logits_of(bins.encode(target))[None]
    least = BinnedValue.of(*outputs_of(exact, bins), bins, PopArt(2)).loss(target)
    assert bool((least < value.loss(target)).all())


def test_gains_are_means_over_actions_where_large_returns_cancel():
    """+5,000 or -5,000: the mean return is 0, and its symlog would weigh an error of 1 as 1."""
    bins = ReturnBins("two_hot", 101, LIMITS)
    table = logits_of(bins.encode(torch.tensor([5_000.0, -5_000.0]).double()))[None, None, None]
    logits = torch.zeros(1, 1, 2, dtype=torch.float64, requires_grad=True)
    place, own = outputs_of(table, bins)
    output = torch.cat((place[..., None], own), -1)
    value = _BinnedDiscreteValues(output, bins, PopArt(1)).under(FlooredCategorical(logits))
    assert float(value.raw.detach().abs()) < 1e-6
    value.normalised.sum().backward()
    assert logits.grad is not None
    assert float(logits.grad.abs().max()) == pytest.approx(math.log1p(5_000) / 2)


@pytest.mark.parametrize("critic", KINDS)
@pytest.mark.parametrize("kind", ["discrete", "continuous", "multi_discrete", "multi_binary"])
def test_critics_start_near_zero_and_values_agree_between_at_and_under(kind, critic):
    torch.manual_seed(0)
    config = tiny_config(heads__critic=critic)
    agent = Agent(spec_of(kind), config).double()
    state = torch.randn(7, agent.memory.output_dim, dtype=torch.float64)
    values = agent.critics(state, agent.popart)
    policy = agent.actor(state)
    assert 0 < float(values.under(policy).raw.detach().abs().max()) < 3  # of 20,000
    with torch.no_grad():
        for parameter in agent.critics.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    values = agent.critics(state, agent.popart)
    if kind == "discrete":
        each = [values.at(torch.full((7,), a)).raw for a in range(3)]
        want = sum(each[a] * policy.probs[..., a] for a in range(3))
        torch.testing.assert_close(values.under(policy).raw, want)
        want = sum(symlog(each[a]) * policy.probs[..., a] for a in range(3))
        torch.testing.assert_close(values.under(policy).normalised, agent.popart.normalise(want))
    elif kind == "continuous":
        with predictable_samples():
            value = values.under(policy)
            sample = policy.sample()
        for g in range(3):
            torch.testing.assert_close(value.raw[..., g], values.at(sample[:, g]).raw[..., g])
    dtype = torch.float64 if kind == "continuous" else torch.int64
    value = values.at(torch.zeros(7, *agent.spec.action.shape, dtype=dtype))
    torch.testing.assert_close(value.normalised, agent.popart.normalise(symlog(value.raw)))


@pytest.mark.parametrize("critic", KINDS)
@pytest.mark.parametrize("kind", ["discrete", "multi_discrete"])
def test_repeated_updates_learn_the_value_of_terminal_rewards(kind, critic):
    """Every transition terminal: Q must become the reward, across three orders of magnitude."""
    config = {"heads__critic": critic, "agent__reward_scale": 1.0}
    config |= {"optim__learning_rate": 6e-3, "agent__discounts": "single"}
    learner = tiny_learner(kind, double=False, memory="feedforward", **config)
    learner.agent.popart = build_popart(1, learner.agent.config.heads)  # the first batch sets it
    batch = random_batch(spec_of(kind), [6, 6, 6, 6], double=False)
    reward = 500.0 * (1 + torch.arange(4)).float().repeat_interleave(6)
    batch = type(batch)(**{**vars(batch), "prev_reward": reward,
                           "terminal": torch.ones_like(batch.terminal)})  # fmt: skip
    first = float(learner.step(batch)["loss/critic"])
    for _ in range(40):
        metrics = learner.step(batch)
    assert float(metrics["loss/critic"]) < 0.6 * first
    assert float(metrics["value/q@0.99"]) == pytest.approx(1250.0, rel=0.35)
