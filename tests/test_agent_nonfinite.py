"""A non-finite batch, loss or gradient is counted and never applied."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from test_agent_helpers import changed, random_batch, snapshot, tiny_learner, tiny_spec

from amago.agent.metrics import MetricMean

KINDS = ["discrete", "continuous"]
OUTPUT = ("weight", "bias")


def batch_of(kind):
    return random_batch(tiny_spec(kind), [5, 4, 6], double=False)


def spoiled(batch, where, value):
    def put(x):
        x = x.clone()
        x[7] = value
        return x

    if where == "place":
        return replace(batch, obs=batch.obs | {"place": put(batch.obs["place"])})
    return replace(batch, **{where: put(getattr(batch, where))})


def state_of(learner):
    """Everything that learning moves: parameters, all buffers, the optimiser's averages."""
    agent = learner.agent
    state = {**dict(agent.named_parameters()), **dict(agent.named_buffers())}
    for index, averages in learner.optimizer.state_dict()["state"].items():
        state |= {f"optimizer.{index}.{name}": value for name, value in averages.items()}
    outputs = {f"{h}.layers.2.{x}" for h in ("critics", "target_critics") for x in OUTPUT}
    assert outputs | {"popart.mean", "popart.second", "popart.mass"} <= state.keys()
    assert any(name.startswith("optimizer.") for name in state)
    return {name: value.detach().clone() for name, value in state.items()}


def moved(learner, before):
    """Names of what is not bit for bit what it was."""
    after = state_of(learner)
    assert after.keys() == before.keys()
    return sorted(name for name, value in before.items() if not torch.equal(value, after[name]))


def watched(learner):
    """What an update has moved by the time that its losses are known."""
    before, real, seen = state_of(learner), learner.total_loss, []

    def total_loss(transitions):
        result = real(transitions)
        seen.append(moved(learner, before))
        return result

    learner.total_loss = total_loss
    return seen


def assert_outputs_in(seen):
    """The update did rescale both output layers, so that there was something to restore."""
    assert len(seen) == 1
    for head in ("critics", "target_critics"):
        assert {f"{head}.layers.2.{x}" for x in OUTPUT} <= {*seen[0]}
    assert {"popart.mean", "popart.second", "popart.mass"} <= {*seen[0]}
    assert any(name.endswith(".u") for name in seen[0])


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize(
    ("kind", "where"),
    [(kind, where) for kind in KINDS for where in ("prev_reward", "place")]
    + [("continuous", "prev_action")],
)
def test_a_non_finite_number_in_a_batch_changes_nothing_and_is_counted(kind, where, value):
    learner = tiny_learner(kind, double=False)
    batch = batch_of(kind)
    learner.step(batch)
    before = state_of(learner)
    metrics = learner.step(spoiled(batch, where, value))
    assert moved(learner, before) == []
    assert (learner.updates, learner.skipped, learner.skipped_in_a_row) == (2, 1, 1)
    assert all(torch.isfinite(value) for value in metrics.values())


@pytest.mark.parametrize("kind", KINDS)
def test_targets_that_overflow_change_no_parameter_and_no_statistic(kind):
    learner = tiny_learner(kind, double=False)
    batch = batch_of(kind)
    learner.step(batch)
    before = state_of(learner)
    seen = watched(learner)
    learner.step(spoiled(batch, "prev_reward", 1e38))  # ×10 is infinite in float32
    assert_outputs_in(seen)
    assert moved(learner, before) == []
    assert learner.skipped == 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_infinite_loss_of_a_finite_batch_changes_no_parameter_and_no_statistic(kind):
    learner = tiny_learner(kind, double=False)
    learner.step(batch_of(kind))
    before = state_of(learner)
    seen = watched(learner)
    real = learner.total_loss
    learner.total_loss = lambda transitions: (real(transitions)[0] * torch.inf, {})
    learner.step(batch_of(kind))
    assert_outputs_in(seen)
    assert moved(learner, before) == []
    assert learner.skipped == 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_infinite_gradient_of_a_finite_loss_changes_no_parameter_and_no_statistic(kind):
    learner = tiny_learner(kind, double=False)
    learner.step(batch_of(kind))
    before = state_of(learner)
    seen = watched(learner)
    handle = learner.agent.actor.out.weight.register_hook(lambda g: g * torch.inf)
    learner.step(batch_of(kind))
    handle.remove()
    assert_outputs_in(seen)
    assert moved(learner, before) == []
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
    learner.step(random_batch(tiny_spec(), [1, 1, 1], double=False))
    assert moved(learner, before) == []


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


@pytest.mark.parametrize("value", [torch.nan, 1e38])  # seen in the batch; seen in the loss
@pytest.mark.parametrize("kind", KINDS)
def test_learning_goes_on_after_a_skipped_update_as_if_it_had_not_been(kind, value):
    a, b = tiny_learner(kind, double=False), tiny_learner(kind, double=False)
    good = batch_of(kind)
    b.step(spoiled(good, "prev_reward", value))
    assert b.skipped == 1
    for learner in (a, b):
        torch.manual_seed(0)
        for _ in range(2):
            learner.step(good)
    assert changed(a.agent, snapshot(b.agent)) == []
    assert moved(a, state_of(b)) == []


def test_a_skipped_first_update_still_leaves_the_next_one_to_set_the_scale():
    learner = tiny_learner(double=False)
    learner.agent.popart.__init__(3)
    learner.step(spoiled(batch_of("discrete"), "prev_reward", 1e38))
    assert float(learner.agent.popart.mass) == 0.0 and learner.skipped == 1
    caught, real = [], learner.agent.critics.rescale
    learner.agent.critics.rescale = lambda *move: (caught.append(move), real(*move))
    learner.step(batch_of("discrete"))
    (scale, shift), = caught  # fmt: skip
    assert torch.equal(scale, torch.ones(3).double()) and not shift.any()


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
