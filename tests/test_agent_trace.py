"""Tree-backup targets against a backward loop, and through the whole update."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from test_agent_helpers import (
    losses,
    predictable_samples,
    random_batch,
    sequences,
    tiny_learner,
    tiny_spec,
)

from amago.agent import transitions as transitions_module
from amago.agent.settings import AgentSettings
from amago.agent.targets import tree_backup_target
from amago.agent.transitions import Transitions
from amago.nets.distributions import TanhGaussian


def slow(target, next_taken, weight):
    """y[t] = target[t] + weight[t]·(y[t+1] - next_taken[t]), from the last row to the first."""
    found = np.array(target)
    for t in range(len(target) - 2, -1, -1):
        found[t] += weight[t] * (found[t + 1] - next_taken[t])
    return found


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 64, 101])
def test_targets_equal_a_backward_loop(rows):
    rng = np.random.default_rng(rows)
    target, next_taken = rng.normal(size=(2, rows, 3))
    weight = rng.random((rows, 3)) * (rng.random((rows, 1)) < 0.9)
    weight[-1] = 0.0
    got = tree_backup_target(*map(torch.tensor, (target, next_taken, weight)))
    np.testing.assert_allclose(got.numpy(), slow(target, next_taken, weight), atol=1e-12)


def test_numbers_by_hand():
    """γ = .5, λ = 1; the policy takes the second action with probability .4, the third never."""
    one = torch.tensor([[1.0], [2.0], [8.0]])
    weight = torch.tensor([[0.5 * 0.4], [0.5 * 0.0], [0.0]])
    got = tree_backup_target(one, torch.tensor([[6.0], [3.0], [99.0]]), weight)
    assert got[:, 0].tolist() == pytest.approx([1 + 0.2 * (2 - 6), 2.0, 8.0])


def test_a_policy_that_takes_the_stored_actions_gets_the_return_of_the_rewards():
    """Bootstrapped values cancel: what is left are rewards and the value after the last row."""
    rng = np.random.default_rng(0)
    rewards, values, gamma = rng.normal(size=6), rng.normal(size=6), 0.9
    one = torch.tensor(rewards + gamma * values)[:, None]
    weight = torch.full((6, 1), gamma, dtype=torch.float64)
    weight[-1] = 0.0
    got = tree_backup_target(one, torch.tensor(values)[:, None], weight)[0, 0]
    powers = gamma ** np.arange(7)
    assert float(got) == pytest.approx((powers[:6] * rewards).sum() + powers[6] * values[-1])


def _slow_agreement(policy, taken, kind):
    """A probability; for vectors the density beside the mode's, per dimension, by a loop."""
    if kind != "continuous":
        return policy.log_prob(taken[None, None]).exp()[0]
    found = []
    for mean, log_std in zip(policy.mean[0], policy.log_std[0], strict=True):
        product = 1.0
        for value, centre, deviation in zip(
            taken.tolist(), mean.tolist(), log_std.exp().tolist(), strict=True
        ):
            raw = math.atanh(min(max(value, -0.99), 0.99))
            beyond = abs(value) >= 0.99 and (centre - raw) * value > 0
            distance = 0.0 if beyond else (raw - centre) / deviation
            product *= math.exp(-0.5 * distance**2)
        found.append(product ** (1 / len(taken)))
    return torch.tensor(found)


def _expected(agent, batch):
    """Weights and values of the next actions, sequence by sequence from the rows of a batch.

    Row t+1 shows the state after action t; the action taken there stands in row t+2.
    """
    states = agent.read(batch)
    start, weights, values = 0, [], []
    for part in sequences(batch):
        for t in range(len(part) - 1):
            row, follows = start + t + 1, t + 2 < len(part) and not part.terminal[t + 1]
            if not follows:
                weights.append(torch.zeros(len(agent.discounts)))
                values.append(None)
                continue
            mask = part.obs.get("action_mask")
            allowed = None if mask is None else mask[t + 1 : t + 2].flatten(1).bool()
            taken = part.prev_action[t + 2 : t + 3]
            policy = agent.target_actor(states.target_actor[row : row + 1], allowed)
            likely = _slow_agreement(policy, taken[0], agent.spec.action.kind)
            weights.append(0.8 * agent.discounts * likely)
            value = agent.target_critics(
                states.target_critic[row : row + 1], agent.popart, torch.tensor([1, 0])
            )
            values.append(value.at(taken).raw.amin(0)[0])
        start += len(part)
    return weights, values


@pytest.mark.parametrize(
    "kind", ["discrete", "masked", "multi_discrete", "multi_binary", "continuous"]
)
def test_an_update_sees_those_targets(kind, monkeypatch):
    """Windows with terminals, truncation and trial boundaries; every row by itself."""
    masked, kind = kind == "masked", "discrete" if kind == "masked" else kind
    learner = tiny_learner(kind, mask=masked, agent__trace=0.8)
    batch = random_batch(tiny_spec(kind, mask=masked), [7, 3, 6, 2], seed=4)
    assert any(part.first[1:].any() for part in sequences(batch))
    assert any(part.terminal.any() for part in sequences(batch))
    monkeypatch.setattr(transitions_module, "draw_critics", lambda *_: torch.tensor([1, 0]))
    seen = {}

    def recorded(target, next_taken, weight):
        seen["parts"] = [x.clone() for x in (target, next_taken, weight)]
        return tree_backup_target(target, next_taken, weight)

    monkeypatch.setattr(transitions_module, "tree_backup_target", recorded)
    learner.agent.eval()
    with predictable_samples(), torch.no_grad():
        got = Transitions(learner.agent, copy.deepcopy(batch), learner.settings).target.numpy()
        weights, values = _expected(learner.agent, batch)
    target, next_taken, weight = seen["parts"]
    for row, (expected, value) in enumerate(zip(weights, values, strict=True)):
        torch.testing.assert_close(weight[row], expected.to(weight.dtype), atol=1e-6, rtol=1e-5)
        if value is not None:
            torch.testing.assert_close(next_taken[row], value, atol=1e-5, rtol=1e-5)
    start = 0
    for part in sequences(batch):
        rows = slice(start, start + len(part) - 1)
        want = slow(target[rows].numpy(), next_taken[rows].numpy(), weight[rows].numpy())
        np.testing.assert_allclose(got[rows], want, atol=1e-6)
        start += len(part) - 1
    assert not np.allclose(got, target)


def test_without_a_trace_targets_are_of_one_step(monkeypatch):
    monkeypatch.setattr(transitions_module, "tree_backup_target", None)
    losses(tiny_learner("discrete"), random_batch(tiny_spec("discrete"), [5, 4], seed=1))


def test_a_vector_near_the_mode_is_followed_and_a_far_one_is_not():
    policy = TanhGaussian(torch.tensor([[0.5, -0.5, 0.0, 0.0]]))
    mode, far = policy.mode(), torch.tensor([[-0.9, 0.9]])
    assert float(policy.agreement(mode)) == pytest.approx(1.0)
    assert float(policy.agreement(far)) < 0.6 * float(policy.agreement(0.9 * mode))


def test_an_action_that_noise_clipped_at_a_bound_agrees_with_a_policy_beyond_it():
    beyond = TanhGaussian(torch.tensor([[4.0, 0.0]]))
    assert float(beyond.agreement(torch.tensor([[1.0]]))) == 1.0
    assert float(beyond.agreement(torch.tensor([[-1.0]]))) < 0.1


@pytest.mark.parametrize("trace", [-0.1, 1.1, float("nan")])
def test_a_trace_beyond_its_range_is_refused(trace):
    with pytest.raises(ValueError, match=r"--agent\.trace must be in 0\.\.1"):
        AgentSettings(trace=trace)


def test_two_ways_to_lengthen_targets_are_refused_where_both_would_apply():
    with pytest.raises(ValueError, match=r"--agent\.trace 0\.9 and --agent\.n-step 3"):
        tiny_learner("discrete", agent__trace=0.9, agent__n_step=3)
