"""n-step targets against a loop over rewards, and through the whole update."""

from __future__ import annotations

import copy

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
from amago.agent.targets import n_step_target

DISCOUNTS = torch.tensor([0.5, 0.9], dtype=torch.float64)


def slow(reward, done, length, values, n):
    """y[t, g] of one window whose first `length` transitions are real, by the definition."""
    found = np.zeros((length, len(DISCOUNTS)))
    for g, discount in enumerate(DISCOUNTS.tolist()):
        for t in range(length):
            total, factor = 0.0, 1.0
            for k in range(n):
                total += factor * reward[t + k]
                factor *= discount
                if done[t + k]:
                    factor = 0.0
                    break
                if t + k + 1 == length:  # truncated, or the window ends here: bootstrap
                    break
            found[t, g] = total + factor * values[t + k, g]
    return found


@pytest.mark.parametrize("n", [1, 2, 3, 5, 50])
def test_targets_equal_sums_over_terminals_truncation_and_ends_of_windows(n):
    rng = np.random.default_rng(n)
    B, L = 6, 9
    lengths = [9, 1, 4, 9, 6, 2]
    reward, values = rng.normal(size=(B, L)), rng.normal(size=(B, L, 2))
    done = np.zeros((B, L), bool)
    for b in (0, 2, 5):  # these end terminal, the others are cut
        done[b, lengths[b] - 1] = True
    one = reward[..., None] + DISCOUNTS.numpy() * ~done[..., None] * values
    valid = np.arange(L) < np.array(lengths)[:, None]
    final = np.arange(L) == np.array(lengths)[:, None] - 1
    got = n_step_target(*(torch.tensor(x[valid]) for x in (one, reward, done, final)), DISCOUNTS, n)
    want = [slow(reward[b], done[b], lengths[b], values[b], n) for b in range(B)]
    np.testing.assert_allclose(got.numpy(), np.concatenate(want), atol=1e-12)


def test_numbers_by_hand():
    """Three transitions, the last one terminal; γ = .5, next values 10, 20, 30."""
    reward, done = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([False, False, True])
    one = torch.tensor([[1 + 5.0], [2 + 10.0], [4.0]])
    final = torch.tensor([False, False, True])
    half = torch.tensor([0.5])
    two = n_step_target(one, reward, done, final, half, 2)
    assert two[:, 0].tolist() == [1 + 0.5 * 2 + 0.25 * 20, 2 + 0.5 * 4, 4.0]
    three = n_step_target(one, reward, done, final, half, 3)
    assert three[:, 0].tolist() == [1 + 0.5 * 2 + 0.25 * 4, 2 + 0.5 * 4, 4.0]


@pytest.mark.parametrize("kind", ["discrete", "continuous", "multi_discrete"])
def test_an_update_with_n_steps_sees_those_targets(kind, monkeypatch):
    """Windows with terminals, truncation and trial boundaries, through `losses`."""
    one, many = tiny_learner(kind), tiny_learner(kind, agent__n_step=3)
    batch = random_batch(tiny_spec(kind), [7, 3, 6, 2], seed=4)
    assert any(
        part.first[1:].any() for part in sequences(batch)
    )  # a further trial starts within a window
    monkeypatch.setattr(transitions_module, "draw_critics", lambda *_: torch.tensor([1, 0]))
    seen = {}
    for name, learner in (("one", one), ("many", many)):
        real = learner.agent.popart.update

        def update(y, name=name, real=real):
            seen[name] = y.clone()
            return real(y)

        learner.agent.popart.update = update
        with predictable_samples():
            losses(learner, copy.deepcopy(batch))
    discounts = one.agent.discounts.numpy()
    start = 0
    for part in sequences(batch):
        length = len(part) - 1
        y = seen["one"][start : start + length].numpy()
        reward = part.prev_reward[1:].numpy() * one.settings.reward_scale
        done = part.terminal[1:].numpy()
        want = y.copy()
        for t in range(length):
            last = t
            total, factor = np.zeros(len(discounts)), np.ones(len(discounts))
            while last < min(t + 2, length - 1) and not done[last]:
                total, factor = total + factor * reward[last], factor * discounts
                last += 1
            want[t] = total + factor * y[last]
        np.testing.assert_allclose(seen["many"][start : start + length].numpy(), want, atol=1e-9)
        start += length
    assert not torch.equal(seen["one"], seen["many"])


def test_less_than_one_step_is_refused():
    with pytest.raises(ValueError, match=r"--agent\.n-step must be at least 1"):
        AgentSettings(n_step=0)
