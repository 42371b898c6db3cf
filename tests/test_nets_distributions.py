"""Action distributions against probabilities computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.distributions import Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from amago.nets.distributions import _ACTION_CLAMP, FlooredCategorical, TanhGaussian


def slow_probabilities(logits, floor, mask):
    """Mask first, then floor the allowed only; nothing allowed counts as all allowed."""
    size = len(logits)
    floor = min(floor, 0.1 / size)
    allowed = [i for i in range(size) if mask is None or mask[i]] or list(range(size))
    total = sum(math.exp(logits[i]) for i in allowed)
    return [
        (1 - len(allowed) * floor) * math.exp(logits[i]) / total + floor if i in allowed else 0.0
        for i in range(size)
    ]


LOGITS = [[0.3, -1.0, 2.0, 0.0], [9.0, -9.0, 0.0, -30.0], [0.0, 0.0, 0.0, 0.0]]
MASKS = [[True, True, False, True], [False, True, False, False], [False] * 4]


@pytest.mark.parametrize("floor", [0.0, 1e-3, 0.5])
@pytest.mark.parametrize("masked", [False, True])
def test_probabilities_log_probabilities_and_entropy_equal_those_by_hand(floor, masked):
    mask = torch.tensor(MASKS) if masked else None
    policy = FlooredCategorical(torch.tensor(LOGITS, dtype=torch.float64), floor, mask)
    for row in range(3):
        want = slow_probabilities(LOGITS[row], floor, MASKS[row] if masked else None)
        np.testing.assert_allclose(policy.probs[row].numpy(), want, atol=1e-12)
        assert float(policy.probs[row].sum()) == pytest.approx(1.0)
        entropy = -sum(p * math.log(p) for p in want if p > 0)
        assert float(policy.entropy()[row]) == pytest.approx(entropy, abs=1e-6)
        plain = slow_probabilities(LOGITS[row], 0.0, MASKS[row] if masked else None)
        for action in range(4):
            if plain[action] > 0:
                got = float(policy.log_prob(torch.tensor(action))[row])
                assert got == pytest.approx(math.log(plain[action]), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("masked", [False, True])
def test_cloning_an_unlikely_action_is_not_starved_by_the_floor(masked):
    logits = torch.tensor([[14.0, 0.0, 0.0, 0.0]], requires_grad=True)
    mask = torch.tensor([[True, True, False, True]]) if masked else None
    FlooredCategorical(logits, 1e-3, mask).log_prob(torch.tensor([1])).sum().backward()
    assert float(logits.grad[0, 1]) == pytest.approx(1.0, abs=1e-3)  # .001 of the floored one


def test_the_floor_is_the_least_probability_and_at_most_a_tenth_of_uniform():
    extreme = torch.tensor([[100.0, 0.0, 0.0, 0.0]])
    assert float(FlooredCategorical(extreme, 1e-3).probs.min()) == pytest.approx(1e-3)
    assert float(FlooredCategorical(extreme, 1.0).probs.min()) == pytest.approx(0.025)
    wide = torch.zeros(1, 400)
    wide[0, 0] = 100.0
    assert float(FlooredCategorical(wide, 1e-3).probs.min()) == pytest.approx(0.1 / 400)


def test_a_masked_action_keeps_probability_zero_whatever_the_floor():
    policy = FlooredCategorical(torch.zeros(3, 4), 0.5, torch.tensor(MASKS))
    assert policy.probs[0, 2] == 0.0
    assert policy.probs[1].tolist() == [0.0, 1.0, 0.0, 0.0]
    assert policy.probs[2].tolist() == pytest.approx([0.25] * 4)


def test_masks_and_extreme_logits_leave_gradients_finite():
    logits = torch.tensor([[300.0, -300.0, 0.0, 5.0]] * 3, requires_grad=True)
    policy = FlooredCategorical(logits, 1e-3, torch.tensor(MASKS))
    (policy.log_prob(policy.mode()).sum() + policy.entropy().sum()).backward()
    assert torch.isfinite(logits.grad).all()


def chi_square(counts, probabilities):
    total = counts.sum()
    return sum(
        (c - total * p) ** 2 / (total * p)
        for c, p in zip(counts.tolist(), probabilities, strict=True)
        if p > 0
    )


@pytest.mark.parametrize("mask", [None, *MASKS])
@pytest.mark.parametrize("logits", LOGITS)
def test_samples_have_the_probabilities_and_masked_actions_are_never_drawn(logits, mask):
    generator = torch.Generator().manual_seed(1)
    n = 40_000
    masks = None if mask is None else torch.tensor(mask).expand(n, 4)
    policy = FlooredCategorical(torch.tensor(logits).expand(n, 4), 1e-2, masks)
    sample = policy.sample(generator)
    want = slow_probabilities(logits, 1e-2, mask)
    counts = torch.bincount(sample, minlength=4)
    assert sample.shape == (n,) and len(counts) == 4
    assert all(c == 0 for c, p in zip(counts.tolist(), want, strict=True) if p == 0)
    assert chi_square(counts, want) < 21.1  # 3 degrees of freedom, 1 in 10,000


@pytest.mark.parametrize("uniform", [0.0, 1.0 - 2.0**-24])
def test_the_extremes_of_the_random_number_never_choose_a_masked_action(uniform, monkeypatch):
    torch.manual_seed(0)
    masks = torch.tensor([[False, True, True, False], [False, False, True, False]]).repeat(500, 1)
    policy = FlooredCategorical(torch.randn(1000, 4) * 5, 1e-3, masks)
    monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.full(shape, uniform))
    assert bool(masks.gather(-1, policy.sample()[:, None]).all())


def test_the_mode_is_the_likeliest_allowed_action():
    policy = FlooredCategorical(torch.tensor(LOGITS), 1e-3, torch.tensor(MASKS))
    assert policy.mode().tolist()[:2] == [0, 1]
    assert FlooredCategorical(torch.tensor(LOGITS)).mode().tolist()[:2] == [2, 0]


# Continuous


def parameters(mean, raw):
    return torch.tensor([*mean, *raw], dtype=torch.float64)


def test_log_probabilities_equal_those_of_a_transformed_normal():
    torch.manual_seed(0)
    policy = TanhGaussian(torch.randn(50, 6, dtype=torch.float64))
    action = torch.rand(50, 3, dtype=torch.float64) * 1.96 - 0.98
    reference = TransformedDistribution(
        Normal(policy.mean, policy.log_std.exp()), TanhTransform(cache_size=1)
    )
    torch.testing.assert_close(policy.log_prob(action), reference.log_prob(action).sum(-1))


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, -1.0), (0.5, -2.0), (-0.8, -1.5)])
def test_the_density_integrates_to_one(mean, log_std):
    raw = math.atanh((log_std + 5) / 3.5 - 1)
    policy = TanhGaussian(parameters([mean], [raw]))
    assert float(policy.log_std) == pytest.approx(log_std)
    grid = torch.linspace(-0.99, 0.99, 20_001, dtype=torch.float64)[:, None]
    density = policy.log_prob(grid).exp()
    assert float(torch.trapezoid(density, grid[:, 0])) == pytest.approx(1.0, abs=1e-3)


def test_actions_at_the_edge_are_read_as_099():
    policy = TanhGaussian(parameters([0.3, -0.2], [0.1, 0.4]))
    edge = policy.log_prob(torch.tensor([1.0, -1.0], dtype=torch.float64))
    inner = policy.log_prob(torch.tensor([0.99, -0.99], dtype=torch.float64))
    assert torch.isfinite(edge) and torch.equal(edge, inner)


def test_the_log_deviation_lies_between_minus_five_and_two():
    raw = torch.tensor([-1e3, -1.0, 0.0, 1.0, 1e3], dtype=torch.float64)
    got = TanhGaussian(torch.cat((torch.zeros(5).double(), raw))).log_std.tolist()
    want = [-5 + 3.5 * (math.tanh(x) + 1) for x in raw.tolist()]
    assert got == pytest.approx(want)
    assert (got[0], got[-1], got[2]) == (-5.0, 2.0, -1.5)


def test_samples_are_tanh_of_the_gaussian_and_carry_gradients():
    generator = torch.Generator().manual_seed(0)
    p = parameters([0.4], [0.3]).requires_grad_()
    policy = TanhGaussian(p.expand(20_000, 2))
    sample = policy.sample(generator)
    assert float(sample.detach().abs().max()) <= 1.0
    raw = torch.atanh(sample.detach().clamp(-1 + 1e-12, 1 - 1e-12))
    std = float(policy.log_std[0].exp().detach())
    assert float(raw.mean()) == pytest.approx(0.4, abs=5 * std / math.sqrt(20_000))
    assert float(raw.std()) == pytest.approx(std, rel=0.03)
    sample.sum().backward()
    assert bool((p.grad != 0).all())
    assert policy.mode()[0].item() == pytest.approx(math.tanh(0.4))


def test_the_entropy_is_that_of_the_gaussian_before_tanh():
    policy = TanhGaussian(parameters([0.4, 0.1], [0.3, -0.2]))
    want = Normal(policy.mean, policy.log_std.exp()).entropy().sum()
    torch.testing.assert_close(policy.entropy(), want)


def test_actions_that_exploration_clipped_do_not_teach_the_deviation():
    torch.manual_seed(0)
    parameters = torch.cat([torch.zeros(4000, 2), torch.full((4000, 2), 0.2)], -1)  # σ = .45
    parameters.requires_grad_()
    policy = TanhGaussian(parameters)
    noisy = policy.sample().detach() + 0.4 * torch.randn(4000, 2)
    clipped = noisy.abs() >= _ACTION_CLAMP
    assert 0.03 < float(clipped.float().mean()) < 0.15
    policy.log_prob(noisy.clamp(-1.0, 1.0)).sum().backward()
    on_mean, on_deviation = parameters.grad.chunk(2, -1)
    assert (on_deviation[clipped] == 0).all() and (on_deviation[~clipped] != 0).all()
    # They do teach the mean, towards the bound at which they are.
    assert (on_mean[clipped].sign() == noisy[clipped].sign()).all()
    # Left to teach it, these few would have most of the say.
    raw = torch.atanh(noisy.clamp(-_ACTION_CLAMP, _ACTION_CLAMP))
    each = ((raw / policy.log_std.exp()) ** 2 - 1.0).abs().detach()
    assert float(each[clipped].sum() / each.sum()) > 0.5 > 5 * float(clipped.float().mean())
