"""Multi-discrete and multi-binary policies against enumeration of all actions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from test_nets_distributions import chi_square, slow_probabilities

from amago.nets import factored
from amago.nets.action import action_features
from amago.nets.distributions import chosen
from amago.nets.factored import Candidates, FactoredCategorical, Factors
from amago.types import ActionSpec

MULTI = ActionSpec("multi_discrete", 9, (3, 2, 4))
BITS = ActionSpec("multi_binary", 3)


def joint(policy, row):
    """Every joint action of one row with its probability, from the marginals."""
    tables = [p[p > 0].tolist() for p in policy.probs[row]]
    values = [torch.nonzero(p > 0)[:, 0].tolist() for p in policy.probs[row]]
    for choice in itertools.product(*[range(len(v)) for v in values]):
        action = torch.tensor([values[d][c] for d, c in enumerate(choice)])
        yield action, math.prod(tables[d][c] for d, c in enumerate(choice))


@pytest.mark.parametrize("floor", [0.0, 1e-3, 0.04])
def test_each_dimension_masks_first_then_floors_what_is_allowed(floor):
    torch.manual_seed(0)
    logits = torch.randn(40, 9, dtype=torch.float64) * 3
    mask = torch.rand(40, 9) < 0.5
    mask[0] = False  # nothing allowed: everything is
    policy = FactoredCategorical(Factors(MULTI), logits, floor, mask)
    for row in range(40):
        for d, (start, size) in enumerate(((0, 3), (3, 2), (5, 4))):
            part = slice(start, start + size)
            want = slow_probabilities(logits[row, part].tolist(), floor, mask[row, part].tolist())
            np.testing.assert_allclose(policy.probs[row, d, :size].numpy(), want, atol=1e-12)
            assert float(policy.probs[row, d, size:].sum()) == 0.0


def test_bits_are_floored_bernoullis():
    logits = torch.tensor([[0.3, -40.0, 2.0]], dtype=torch.float64)
    policy = FactoredCategorical(Factors(BITS), logits, 1e-3)
    for bit, x in enumerate(logits[0].tolist()):
        want = (1 - 2e-3) / (1 + math.exp(-x)) + 1e-3
        assert float(policy.probs[0, bit, 1]) == pytest.approx(want, abs=1e-12)
        assert float(policy.probs[0, bit].sum()) == pytest.approx(1.0)


@pytest.mark.parametrize("spec", [MULTI, BITS])
def test_log_probabilities_and_entropy_equal_those_of_all_joint_actions(spec):
    torch.manual_seed(1)
    logits = torch.randn(3, spec.size, dtype=torch.float64)
    policy, plain = (FactoredCategorical(Factors(spec), logits, floor) for floor in (1e-3, 0.0))
    for row in range(3):
        total = entropy = 0.0
        for (action, probability), (_, cloned) in zip(
            joint(policy, row), joint(plain, row), strict=True
        ):
            got = float(policy.log_prob(action.expand(3, -1))[row])
            assert got == pytest.approx(math.log(cloned), abs=1e-9)  # without the floor
            total += probability
            entropy -= probability * math.log(probability)
        assert total == pytest.approx(1.0)
        assert float(policy.entropy()[row]) == pytest.approx(entropy)


@pytest.mark.parametrize("spec", [MULTI, BITS])
def test_samples_have_the_joint_probabilities(spec):
    torch.manual_seed(2)
    n = 40_000
    logits = torch.randn(spec.size, dtype=torch.float64)
    mask = None
    if spec is MULTI:
        mask = torch.tensor([1, 1, 1, 1, 1, 0, 1, 0, 1]).bool().expand(n, -1)
    policy = FactoredCategorical(Factors(spec), logits.expand(n, -1), 1e-2, mask)
    sample = policy.sample(torch.Generator().manual_seed(0))
    known = list(joint(policy, 0))
    counts = torch.stack([(sample == action).all(-1).sum() for action, _ in known])
    assert int(counts.sum()) == n
    limit = {8: 29.9, 12: 35.6}[len(known)]  # 7 and 11 degrees, about 1 in 10,000
    assert chi_square(counts, [p for _, p in known]) < limit
    assert sample.shape == (n, *spec.shape)
    mode = policy.mode()[0]
    assert max(known, key=lambda pair: pair[1])[0].tolist() == mode.tolist()


def quadratic(action):
    """A value in which the dimensions interact, [..., A] → [...]."""
    size = action.shape[-1]
    matrix = torch.sin(torch.arange(size * size, dtype=torch.float64) * 2.3).view(size, size)
    return torch.einsum("...a,ab,...b->...", action, matrix, action) + action.sum(-1).cos()


@pytest.mark.parametrize("limit", [8, 3, 2])
@pytest.mark.parametrize("spec", [MULTI, BITS])
def test_the_mean_estimate_of_values_and_gradients_is_that_of_all_joint_actions(
    spec, limit, monkeypatch
):
    """limit < 4: dimensions with more values than are evaluated."""
    monkeypatch.setattr(factored, "_MAX_CANDIDATES", limit)
    torch.manual_seed(3)
    factors = Factors(spec).double()
    logits = torch.randn(spec.size, dtype=torch.float64, requires_grad=True)
    mask = None
    if spec is MULTI:
        mask = torch.tensor([1, 0, 1, 1, 1, 1, 1, 1, 1]).bool()
    one = FactoredCategorical(factors, logits[None], 1e-3, None if mask is None else mask[None])
    exact = sum(
        float(quadratic(action_features(action, spec, torch.float64)))
        * chosen(one.probs[0], action).prod()
        for action, _ in joint(one, 0)
    )
    (want,) = torch.autograd.grad(exact, logits)
    n = 60_000
    wide = None if mask is None else mask.expand(n, 1, -1)
    shared = logits.detach().expand(n, 1, -1).clone().requires_grad_()
    policy = FactoredCategorical(factors, shared, 1e-3, wide)
    candidates = Candidates(policy)
    assert len(candidates) == min(limit, 4 if spec is MULTI else 2)
    outputs = torch.stack([quadratic(candidates.features(k)) for k in range(len(candidates))])
    value = candidates.expectation(outputs[:, None].detach())
    assert value.shape == (1, n, 1)
    error = float(value.detach().std()) / math.sqrt(n)
    assert float(value.detach().mean()) == pytest.approx(float(exact.detach()), abs=5 * error)
    (each,) = torch.autograd.grad(value.sum(), shared)
    each = each[:, 0]
    tolerance = 5 * each.std(0) / math.sqrt(n) + 1e-9
    assert bool(((each.mean(0) - want).abs() <= tolerance).all())
    assert float(want.abs().max()) > 8 * float(tolerance.max())  # the test can tell


def test_candidates_of_the_only_dimension_are_the_exact_expectation():
    factors = Factors(ActionSpec("multi_discrete", 4, (4,))).double()
    logits = torch.randn(5, 1, 4, dtype=torch.float64, requires_grad=True)
    policy = FactoredCategorical(factors, logits)
    candidates = Candidates(policy)
    outputs = torch.stack([quadratic(candidates.features(k)) for k in range(4)])[:, None]
    value = candidates.expectation(outputs)
    q = torch.stack([quadratic(torch.eye(4).double()[v]) for v in range(4)])
    want = (torch.softmax(logits, -1) * q).sum(-1)
    torch.testing.assert_close(value[0], want)
    ours = torch.autograd.grad(value.sum(), logits, retain_graph=True)[0]
    torch.testing.assert_close(ours, torch.autograd.grad(want.sum(), logits)[0])


def test_masked_values_are_never_candidates_with_weight():
    torch.manual_seed(5)
    mask = torch.rand(300, 1, 9) < 0.4
    policy = FactoredCategorical(Factors(MULTI), torch.randn(300, 1, 9), 1e-3, mask)
    allowed = policy.factors.allowed(mask)
    candidates = Candidates(policy)
    for k in range(len(candidates)):
        taken = candidates.features(k).bool()[..., policy.factors.entries] & policy.factors.exists
        forbidden = (taken & ~allowed).any(-1).any(-1)
        assert float(candidates.probs[..., k][forbidden].sum()) == 0.0
    torch.testing.assert_close(candidates.probs.sum(-1), torch.ones(300, 1))
