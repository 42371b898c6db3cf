"""Sequences of a batch do not touch each other; ends of episodes and trials."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from test_agent_helpers import (
    MEMORIES,
    changed,
    gradients,
    losses,
    predictable_samples,
    random_batch,
    sequences,
    snapshot,
    tiny_config,
    tiny_learner,
    tiny_spec,
)

from amago.agent.agent import Agent
from amago.config import override

LENGTHS, STARTS = [7, 2, 5, 4], [0, 3, 9, 1]
HEADS = ("critics", "target_critics")
KINDS = [("discrete", False), ("discrete", True), ("continuous", False)]


def ragged_batch(kind, mask=False):
    return random_batch(tiny_spec(kind, mask=mask), LENGTHS, starts=STARTS)


def targets_of(learner, batch):
    """The TD targets [M, G] that the learner makes of a batch; leaves the agent as it was."""
    caught, before = [], snapshot(learner.agent)

    def catch(target):
        caught.append(target)
        return torch.ones(target.shape[1]), torch.zeros(target.shape[1])

    learner.agent.popart.update = catch
    try:
        losses(learner, batch)
    finally:
        del learner.agent.popart.update
    assert len(caught) == 1 and changed(learner.agent, before) == []
    return caught[0]


@pytest.mark.parametrize(("kind", "mask"), KINDS)
@pytest.mark.parametrize(
    "memory", ["sinusoid", "learned", "rope", "previous row", "gru", "feedforward"]
)
def test_a_batch_and_its_sequences_alone_give_the_same_losses_and_gradients(memory, kind, mask):
    batch = ragged_batch(kind, mask)
    learner = tiny_learner(kind, mask=mask, **dots(MEMORIES[memory]))
    alone = copy.deepcopy(learner)
    with predictable_samples():
        total, metrics = losses(learner, batch)
        total.backward()

        # One sequence at a time: all targets by the old critics on the old scale, all losses
        # by the rescaled critics on the new one.
        rows = sequences(batch)
        targets = [targets_of(alone, row) for row in rows]
        old = snapshot(alone.agent)
        new = copy.deepcopy(alone.agent.popart)
        move = new.update(torch.cat(targets))
        made = []
        count = sum(len(target) for target in targets)
        mean = {"loss/total": 0.0, "loss/critic": 0.0, "loss/actor": 0.0, "loss/cloning": 0.0}
        for row, target in zip(rows, targets, strict=True):
            popart = alone.agent.popart
            alone.agent.load_state_dict(old)

            def update(y, popart=popart):
                made.append(y)
                popart.load_state_dict(new.state_dict())
                return move

            popart.update = update
            part, parts = losses(alone, row)
            (part * len(target) / count).backward()
            for name in mean:
                mean[name] += float(parts[name]) * len(target) / count
    for name, value in mean.items():
        assert float(metrics[name]) == pytest.approx(value, abs=1e-9), name
    got, want = gradients(learner.agent), gradients(alone.agent)
    assert sum(float(g.abs().sum()) for g in want.values()) > 0
    for name in want:
        torch.testing.assert_close(got[name], want[name], atol=1e-9, rtol=1e-7, msg=name)
    assert all(torch.equal(y, target) for y, target in zip(made, targets, strict=True))
    for name, value in new.state_dict().items():
        torch.testing.assert_close(learner.agent.popart.state_dict()[name], value)
    want = alone.agent.state_dict()
    for name, value in learner.agent.state_dict().items():
        torch.testing.assert_close(value, want[name], atol=1e-12, rtol=1e-12, msg=name)
    moved = changed(learner.agent, old)
    last = len(learner.agent.critics.layers) - 1
    outputs = {f"{head}.layers.{last}.{x}" for head in HEADS for x in ("weight", "bias")}
    assert {*moved} == outputs | {f"popart.{x}" for x in ("mean", "second", "mass")}


def dots(overrides):
    return {key.replace(".", "__"): value for key, value in overrides.items()}


@pytest.mark.parametrize(("kind", "mask"), KINDS)
def test_statistics_of_a_step_are_those_of_its_rows(kind, mask):
    batch = ragged_batch(kind, mask)
    learner = tiny_learner(kind, mask=mask)
    agent = learner.agent
    normalizer, popart = copy.deepcopy(agent.encoder.normalizer), copy.deepcopy(agent.popart)
    caught, real = [], type(agent.popart).update
    rescaled = {head: [] for head in HEADS}

    def update(y):
        caught.append(y.clone())
        return real(agent.popart, y)

    agent.popart.update = update
    for head in HEADS:
        getattr(agent, head).rescale = lambda *move, head=head: rescaled[head].append(move)
    learner.step(batch)

    rows = []
    for place, reward in zip(batch.obs["place"], batch.prev_reward, strict=True):
        rows.append([*place.tolist(), float(reward)])
    for feature in range(3):
        mean = sum(row[feature] for row in rows) / len(rows)
        second = sum(row[feature] ** 2 for row in rows) / len(rows)
        for name, value in (("mean", mean), ("second", second)):
            old = float(getattr(normalizer, name)[feature])
            new = float(getattr(agent.encoder.normalizer, name)[feature])
            assert new == pytest.approx(old + 1e-4 * (value - old), abs=1e-12)

    assert len(caught) == 1 and len(caught[0]) == sum(LENGTHS) - len(LENGTHS)
    for g in range(3):
        values = [float(y) for y in caught[0][:, g]]
        mean = sum(values) / len(values)
        second = sum(y * y for y in values) / len(values)
        for name, value in (("mean", mean), ("second", second)):
            old = float(getattr(popart, name)[g])
            new = float(getattr(agent.popart, name)[g])
            assert new == pytest.approx(old + 5e-4 * (value - old), abs=1e-12)

    # The critics move with them: once, all alike.
    (mean, std), (new_mean, new_std) = popart.statistics(), agent.popart.statistics()
    for head in HEADS:
        assert len(rescaled[head]) == 1
        scale, shift = rescaled[head][0]
        torch.testing.assert_close(scale, std / new_std, atol=1e-12, rtol=0)
        torch.testing.assert_close(shift, (mean - new_mean) / new_std, atol=1e-12, rtol=0)


@pytest.mark.parametrize("memory", ["sinusoid", "gru"])
@pytest.mark.parametrize(("kind", "mask"), KINDS)
def test_the_order_of_sequences_changes_no_loss_and_no_gradient(kind, mask, memory):
    batch = ragged_batch(kind, mask)
    learner = tiny_learner(kind, mask=mask, **dots(MEMORIES[memory]))
    other = copy.deepcopy(learner)
    with predictable_samples():
        for who, rows in ((learner, batch), (other, in_order(batch, [2, 0, 3, 1]))):
            losses(who, rows)[0].backward()
    want = gradients(other.agent)
    for name, got in gradients(learner.agent).items():
        torch.testing.assert_close(got, want[name], atol=1e-9, rtol=1e-7, msg=name)


def in_order(batch, order):
    parts = [sequences(batch)[number] for number in order]
    obs = {key: torch.cat([part.obs[key] for part in parts]) for key in batch.obs}
    names = ("prev_action", "prev_reward", "time", "first", "terminal")
    rest = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
    return type(batch)(obs=obs, lengths=sum((part.lengths for part in parts), ()), **rest)


# What bootstraps.


def one_window(kind="discrete", length=5):
    batch = random_batch(tiny_spec(kind), [length])
    return replace(batch, terminal=torch.zeros_like(batch.terminal))


def next_values(learner, batch):
    """min over critics of the target critics' expected value of rows 1.. [T, G]."""
    agent = learner.agent
    with torch.no_grad():
        states = agent.states(batch)[1:]
        policy = agent.target_actor(states)
        values = agent.target_critics(states, agent.popart)
        if agent.spec.action.kind == "discrete":
            mean, std = agent.popart.statistics()
            q = (values.table * policy.probs).sum(-1) * std + mean
        else:
            q = values.at(policy.sample()[:, 0]).raw  # only used with one discount
    return q.amin(0)


def test_truncation_bootstraps_and_termination_does_not():
    learner = tiny_learner(agent__reward_scale=7.0)
    truncated = one_window()
    terminal = truncated.terminal.clone()
    terminal[-1] = True
    terminated = replace(truncated, terminal=terminal)
    reward = 7.0 * truncated.prev_reward[1:, None]
    value = next_values(learner, truncated)
    discounts = learner.agent.discounts
    assert float(value.abs().min()) > 1e-3
    torch.testing.assert_close(targets_of(learner, truncated), reward + discounts * value)
    got = targets_of(learner, terminated)
    assert torch.equal(got[-1], reward[-1].expand(3))
    torch.testing.assert_close(got[:-1], (reward + discounts * value)[:-1])


def test_termination_in_continuous_domains_leaves_the_reward_alone():
    learner = tiny_learner("continuous", agent__reward_scale=7.0)
    batch = one_window("continuous")
    terminal = batch.terminal.clone()
    terminal[-1] = True
    with predictable_samples():
        truncated = targets_of(learner, batch)
        terminated = targets_of(learner, replace(batch, terminal=terminal))
    reward = 7.0 * batch.prev_reward[1:, None].expand(-1, 3)
    assert torch.equal(terminated[-1], reward[-1])
    assert float((truncated - reward).abs().min()) > 1e-4
    torch.testing.assert_close(terminated[:-1], truncated[:-1])


def test_the_end_of_an_inner_trial_neither_stops_the_bootstrap_nor_clears_the_memory():
    learner = tiny_learner(agent__reward_scale=1.0)
    batch = one_window()
    first = torch.zeros_like(batch.first)
    first[0] = first[3] = True
    batch = replace(batch, first=first)
    value = next_values(learner, batch)
    want = batch.prev_reward[1:, None] + learner.agent.discounts * value
    torch.testing.assert_close(targets_of(learner, batch), want)

    moved = batch.obs["place"].clone()
    moved[0] += 1.0
    other = replace(batch, obs=batch.obs | {"place": moved})
    with torch.no_grad():
        difference = (learner.agent.states(batch) - learner.agent.states(other)).abs().amax(-1)
    assert float(difference[3:].min()) > 1e-6


def test_a_terminal_flag_on_the_first_row_of_a_window_changes_nothing():
    # Row 0 says how the transition before the window ended, which is not in the loss.
    learner = tiny_learner()
    batch = one_window()
    terminal = batch.terminal.clone()
    terminal[0] = True
    want = targets_of(learner, batch)
    assert torch.equal(targets_of(learner, replace(batch, terminal=terminal)), want)


@pytest.mark.parametrize("critic", ["scalar", "two_hot", "hl_gauss"])
@pytest.mark.parametrize(("kind", "mask"), KINDS)
def test_an_agent_has_shapes_without_memory(kind, mask, critic):
    """Packed agents are checked against these before anything is allocated."""
    config = override(tiny_config(), {"heads.critic": critic})
    with torch.device("meta"):
        empty = Agent(tiny_spec(kind, mask=mask), config)
    full = Agent(tiny_spec(kind, mask=mask), config)
    assert all(tensor.is_meta for tensor in empty.parameters())
    shapes = {name: tensor.shape for name, tensor in full.state_dict().items()}
    assert shapes == {name: tensor.shape for name, tensor in empty.state_dict().items()}
