"""Who learns from which term, the optimiser step, and the target averages."""

from __future__ import annotations

import copy

import pytest
import torch
from test_agent_helpers import (
    KINDS,
    TERMS,
    backward,
    batch_of,
    changed,
    gradients,
    losses,
    predictable_samples,
    random_batch,
    size,
    snapshot,
    tiny_learner,
    tiny_spec,
)

from amago.agent.settings import OptimSettings


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("term", ["actor", "cloning"])
def test_terms_of_the_actor_leave_the_critics_alone_and_reach_the_encoder(term, kind):
    grads = backward(tiny_learner(kind, **TERMS[term]), kind)
    assert size(grads, "critics") == 0.0
    assert size(grads, "actor") > 0
    assert size(grads, "memory") > 0 and size(grads, "encoder") > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("term", ["actor", "cloning"])
def test_terms_of_the_actor_reach_the_state_through_the_actor_alone(term, kind):
    learner = tiny_learner(kind, **TERMS[term])
    actor = learner.agent.actor
    real = actor.forward
    actor.forward = lambda state, mask=None: real(state.detach(), mask)
    grads = backward(learner, kind)
    assert size(grads, "actor") > 0
    assert size(grads, "memory") == size(grads, "encoder") == size(grads, "critics") == 0.0


def test_the_policy_gradient_of_a_continuous_action_passes_through_the_critics():
    # Were the sampled action detached, nothing would reach the actor.
    grads = backward(tiny_learner("continuous", **TERMS["actor"]), "continuous")
    assert float(grads["actor.out.weight"].abs().min()) >= 0.0
    assert float(grads["actor.out.weight"].abs().max()) > 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_the_critic_term_reaches_critics_and_encoder_but_not_the_actor(kind):
    grads = backward(tiny_learner(kind, **TERMS["critic"]), kind)
    assert size(grads, "critics") > 0
    assert size(grads, "memory") > 0 and size(grads, "encoder") > 0
    assert size(grads, "actor") == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_target_of_the_critic_term_carries_no_gradient(kind):
    # With the online values held still, all that is left is the target.
    learner = tiny_learner(kind, **TERMS["critic"])
    critics = learner.agent.critics
    real = critics.forward
    critics.forward = lambda state, popart, members=None: real(
        state.detach(), popart, members
    ).detached()
    with predictable_samples():
        total, _ = losses(learner, batch_of(kind))
    if total.requires_grad:  # through the other terms, whose weights are zero
        total.backward()
    grads = gradients(learner.agent)
    assert all(not g.any() for g in grads.values())


@pytest.mark.parametrize("kind", KINDS)
def test_targets_and_buffers_never_get_gradients(kind):
    learner = tiny_learner(kind)
    backward(learner, kind)
    agent = learner.agent
    for target in (agent.target_actor, agent.target_critics):
        assert all(not p.requires_grad and p.grad is None for p in target.parameters())
    for name, buffer in agent.named_buffers():
        assert not buffer.requires_grad and buffer.grad is None, name
    trained = {id(p) for p in learner.parameters}
    frozen = [*agent.target_actor.parameters(), *agent.target_critics.parameters()]
    assert trained.isdisjoint(map(id, frozen))
    assert trained | {*map(id, frozen)} == {id(p) for p in agent.parameters()}


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_all_terms_are_the_weighted_sum_of_their_own(kind):
    weights = {
        "terms__actor__weight": 1.0,
        "terms__cloning__weight": 0.1,
        "terms__critic__weight": 10.0,
    }
    whole = backward(tiny_learner(kind, **weights), kind)
    alone = {term: backward(tiny_learner(kind, **TERMS[term]), kind) for term in TERMS}
    for name, grad in whole.items():
        want = alone["actor"][name] + 0.1 * alone["cloning"][name] + 10.0 * alone["critic"][name]
        torch.testing.assert_close(grad, want, atol=1e-10, rtol=1e-8)


# The optimiser step


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_is_adamw_on_clipped_gradients_of_the_trainable_parameters(kind):
    rate, decay, clip = 0.01, 0.1, 0.05
    learner = tiny_learner(
        kind, optim__learning_rate=rate, optim__weight_decay=decay, optim__grad_clip=clip,
    )  # fmt: skip
    other = copy.deepcopy(learner)
    with predictable_samples():
        metrics = learner.step(batch_of(kind))
    # The same update by hand; what precedes the loss is learner.step's own order.
    from amago.nets.layers import power_iterate

    power_iterate(other.agent)
    other.agent.encoder.update_statistics(batch_of(kind))
    grads = backward(other, kind)
    norm = sum(float((g**2).sum()) for g in grads.values()) ** 0.5
    assert norm > clip
    assert float(metrics["grad/norm"]) == pytest.approx(norm, rel=1e-6)
    after = dict(learner.agent.named_parameters())
    for name, parameter in other.agent.named_parameters():
        if name.startswith("target_"):
            continue
        g = grads[name] * clip / (norm + 1e-6)
        # Adam's first step: m/(1-β1) = g and v/(1-β2) = g².
        want = parameter.detach() * (1 - rate * decay) - rate * g / (g.abs() + 1e-8)
        torch.testing.assert_close(after[name].detach(), want, atol=1e-8, rtol=1e-6, msg=name)


def test_a_small_beta2_forgets_a_burst_of_large_gradients():
    def step_after_a_burst(beta2: float) -> float:
        learner = tiny_learner(optim__learning_rate=0.01, optim__beta2=beta2)
        parameter = learner.parameters[0]
        optimizer = learner.optimizer
        for scale in (100.0, *[1.0] * 200):
            before = parameter.detach().clone()
            parameter.grad = torch.full_like(parameter, scale)
            optimizer.step()
        return float((parameter.detach() - before).abs().mean())

    assert step_after_a_burst(0.95) > 5 * step_after_a_burst(0.999)


@pytest.mark.parametrize("beta2", [-0.1, 1.0, float("nan")])
def test_beta2_lies_below_one(beta2):
    with pytest.raises(ValueError, match="beta2"):
        OptimSettings(beta2=beta2)


def test_gradients_below_the_clip_are_left_alone():
    batch = batch_of("discrete")
    learners = [tiny_learner(optim__grad_clip=clip) for clip in (1e6, 1e9)]
    for learner in learners:
        learner.step(batch)
    assert changed(learners[0].agent, snapshot(learners[1].agent)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_targets_move_by_tau_after_the_optimiser_step(kind):
    tau = 0.25
    learner = tiny_learner(kind, agent__target_tau=tau)
    agent = learner.agent
    pairs = ((agent.target_actor, agent.actor), (agent.target_critics, agent.critics))
    old = [[p.clone() for p in target.parameters()] for target, _ in pairs]
    before = [[p.detach().clone() for p in online.parameters()] for _, online in pairs]
    mean, std = (x.clone() for x in agent.popart.statistics())
    learner.step(batch_of(kind))
    # The averages are of critics on the new scale: output weights [C, H, ·], biases [C, 1, ·].
    new_mean, new_std = agent.popart.statistics()
    columns = 3 if kind == "discrete" else 1  # per discount
    scale, shift = std / new_std, (mean - new_mean) / new_std
    assert float((scale - 1).abs().min()) > 1e-7 and float(shift.abs().min()) > 1e-7
    assert [name for name, _ in agent.critics.named_parameters()][-2:] == [
        "layers.2.weight", "layers.2.bias"
    ]  # fmt: skip
    weight, bias = old[1][-2:]
    for g in range(3):
        at = slice(g * columns, (g + 1) * columns)
        weight[..., at] = weight[..., at] * scale[g]
        bias[..., at] = bias[..., at] * scale[g] + shift[g]
    for (target, online), was, online_was in zip(pairs, old, before, strict=True):
        for t, o, w, ow in zip(
            target.parameters(), online.parameters(), was, online_was, strict=True
        ):
            assert not torch.equal(o, ow)
            torch.testing.assert_close(t, w + tau * (o.detach() - w), atol=1e-12, rtol=0)


def test_the_learning_rate_rises_linearly_and_stays():
    learner = tiny_learner(optim__learning_rate=0.01, optim__warmup_updates=4)
    rates = []
    learner.optimizer.register_step_pre_hook(
        lambda optimizer, *_: rates.append(optimizer.param_groups[0]["lr"])
    )
    for _ in range(6):
        learner.step(batch_of("discrete"))
    assert rates == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01, 0.01])


def test_the_learning_rate_falls_to_its_final_fraction_when_the_end_is_known():
    learner = tiny_learner(
        optim__learning_rate=0.01, optim__warmup_updates=2, optim__final_fraction=0.2
    )
    learner.planned_updates = 4
    rates = []
    learner.optimizer.register_step_pre_hook(
        lambda optimizer, *_: rates.append(optimizer.param_groups[0]["lr"])
    )
    for _ in range(5):
        learner.step(batch_of("discrete"))
    assert rates == pytest.approx([0.004, 0.006, 0.004, 0.002, 0.002])


def test_a_learner_step_makes_one_power_iteration_with_the_weights_before_it():
    learner = tiny_learner()
    layer = learner.agent.memory.blocks[0].widen
    by_hand = copy.deepcopy(layer)
    by_hand.power_iterate()
    assert not torch.equal(by_hand.u, layer.u)
    learner.step(batch_of("discrete"))
    assert torch.equal(layer.u, by_hand.u) and torch.equal(layer.v, by_hand.v)


def test_dropout_is_active_while_learning_and_off_while_acting():
    learner = tiny_learner(transformer__dropout=0.5)
    batch = batch_of("discrete")
    learner.agent.train()
    assert not torch.equal(learner.agent.states(batch), learner.agent.states(batch))
    learner.agent.eval()
    assert torch.equal(learner.agent.states(batch), learner.agent.states(batch))
    learner.step(batch)
    assert learner.agent.training


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_update(kind):
    learners = [tiny_learner(kind, double=False, agent__target_critics=2) for _ in range(2)]
    batch = random_batch(tiny_spec(kind), [6, 4, 5], double=False)
    for learner in learners:
        torch.manual_seed(7)
        for _ in range(3):
            learner.step(batch)
    assert changed(learners[0].agent, snapshot(learners[1].agent)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_repeated_updates_on_one_batch_fit_the_critics_to_it(kind):
    learner = tiny_learner(kind, double=False, optim__learning_rate=3e-3)
    batch = random_batch(tiny_spec(kind), [6, 4, 5], double=False)
    losses = [float(learner.step(batch)["loss/critic"]) for _ in range(60)]
    assert losses[-1] < 0.5 * losses[0]
