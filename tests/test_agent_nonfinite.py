"""A non-finite batch, loss or gradient is counted and never applied."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from test_agent_helpers import changed, map_batch, random_batch, snapshot, tiny_learner, tiny_spec

from amago.agent.metrics import MetricMean

KINDS = ["discrete", "continuous"]


def batch_of(kind):
    return random_batch(tiny_spec(kind), [5, 4, 6], double=False)


def spoiled(batch, where, value):
    def put(x):
        x = x.clone()
        x[1, 2] = value
        return x

    if where == "place":
        return replace(batch, obs=batch.obs | {"place": put(batch.obs["place"])})
    return replace(batch, **{where: put(getattr(batch, where))})


def state_of(learner):
    """Everything that learning moves, except the singular vectors of σReparam."""
    return {k: v for k, v in snapshot(learner.agent).items() if not k.endswith((".u", ".v"))}


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("where", ["prev_reward", "prev_action", "place"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_non_finite_number_in_a_batch_changes_nothing_and_is_counted(kind, where, value):
    learner = tiny_learner(kind, double=False)
    batch = batch_of(kind)
    learner.step(batch)
    before = state_of(learner)
    metrics = learner.step(spoiled(batch, where, value))
    assert changed(learner.agent, before) == []
    assert (learner.updates, learner.skipped, learner.skipped_in_a_row) == (2, 1, 1)
    assert all(torch.isfinite(value) for value in metrics.values())


@pytest.mark.parametrize("kind", KINDS)
def test_targets_that_overflow_change_no_parameter_and_no_statistic(kind):
    learner = tiny_learner(kind, double=False)
    batch = batch_of(kind)
    learner.step(batch)
    before = state_of(learner)
    learner.step(spoiled(batch, "prev_reward", 1e38))  # ×10 is infinite in float32
    assert changed(learner.agent, before) == []
    assert learner.skipped == 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_infinite_loss_of_a_finite_batch_changes_no_parameter_and_no_statistic(kind):
    learner = tiny_learner(kind, double=False)
    learner.step(batch_of(kind))
    before = state_of(learner)
    real = learner.losses
    learner.losses = lambda batch, rows: (real(batch, rows)[0] * torch.inf, {})
    learner.step(batch_of(kind))
    assert changed(learner.agent, before) == []
    assert learner.skipped == 1


def test_an_infinite_gradient_of_a_finite_loss_changes_no_parameter_and_no_statistic():
    learner = tiny_learner(double=False)
    learner.step(batch_of("discrete"))
    before = state_of(learner)
    handle = learner.agent.actor.out.weight.register_hook(lambda g: g * torch.inf)
    learner.step(batch_of("discrete"))
    handle.remove()
    assert changed(learner.agent, before) == []
    assert learner.skipped == 1


def test_the_singular_vectors_of_a_skipped_batch_stay_finite():
    learner = tiny_learner(double=False)
    learner.step(spoiled(batch_of("discrete"), "prev_reward", torch.nan))
    learner.step(spoiled(batch_of("discrete"), "prev_reward", 1e38))
    assert all(torch.isfinite(value).all() for value in learner.agent.state_dict().values())


@pytest.mark.filterwarnings("ignore:std")
def test_a_batch_without_a_single_transition_changes_no_parameter_and_no_statistic():
    learner = tiny_learner(double=False)
    learner.step(batch_of("discrete"))
    before = state_of(learner)
    learner.step(map_batch(batch_of("discrete"), lambda x: x[:, :1]))
    assert changed(learner.agent, before) == []


@pytest.mark.parametrize("where", ["prev_reward", "place"])
def test_twenty_skipped_updates_in_a_row_raise(where):
    learner = tiny_learner(double=False)
    bad = spoiled(batch_of("discrete"), where, torch.nan)
    for _ in range(19):
        learner.step(bad)
    with pytest.raises(RuntimeError, match="20 updates in a row"):
        learner.step(bad)


def test_an_applied_update_starts_the_count_of_skipped_ones_anew():
    learner = tiny_learner(double=False)
    good = batch_of("discrete")
    bad = spoiled(good, "prev_reward", torch.nan)
    for _ in range(2):
        for _ in range(19):
            learner.step(bad)
        learner.step(good)
    assert (learner.updates, learner.skipped, learner.skipped_in_a_row) == (40, 38, 0)


def test_learning_goes_on_after_a_skipped_update_as_if_it_had_not_been():
    a, b = tiny_learner(double=False), tiny_learner(double=False)
    good = batch_of("discrete")
    b.step(spoiled(good, "prev_reward", torch.nan))
    for learner in (a, b):
        torch.manual_seed(0)
        learner.step(good)
    assert changed(a.agent, snapshot(b.agent)) == []


def test_the_mean_of_an_epoch_is_over_the_updates_that_have_the_metric():
    mean = MetricMean()
    mean.add({"loss/total": torch.tensor(4.0), "grad/norm": torch.tensor(1.0)})
    mean.add({"loss/total": torch.tensor(2.0)})
    mean.add({})  # a skipped update describes nothing
    assert mean.read() == {"loss/total": 3.0, "grad/norm": 1.0}


def test_a_single_critic_gives_finite_metrics():
    learner = tiny_learner(double=False, heads__num_critics=1, agent__target_critics=1)
    metrics = learner.step(batch_of("discrete"))
    assert all(torch.isfinite(value) for value in metrics.values())
