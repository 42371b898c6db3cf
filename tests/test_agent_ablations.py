"""What each ablation of the learning rule changes: who learns from what, and who reads what."""

from __future__ import annotations

import copy

import pytest
import torch
from test_agent_helpers import (
    DISCOUNTS,
    KINDS,
    TERMS,
    backward,
    batch_of,
    gradients,
    losses,
    predictable_samples,
    sequences,
    size,
    tiny_config,
    tiny_learner,
    tiny_spec,
)
from torch import Tensor, nn

from amago.agent.agent import Agent, sequences_of
from amago.agent.update import Learner

TARGET = f"value/target@{DISCOUNTS[-1]:g}"
NO_TERM = {"terms__actor__weight": 0.0, "terms__cloning__weight": 0.0, "terms__critic__weight": 0.0}
GCSL = {
    "terms__actor__weight": 0.0,
    "terms__cloning__weight": 1.0,
    "terms__cloning__filter": "none",
}


def numbers(learner: Learner, kind: str) -> dict[str, Tensor]:
    """All that describes the losses of one batch, which leave the learner as it was."""
    with predictable_samples():
        return losses(copy.deepcopy(learner), batch_of(kind))[1]


def disturb(*modules: nn.Module) -> None:
    with torch.no_grad():
        for module in modules:
            for parameter in module.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter))


def cloning_loss(agent: Agent, kind: str) -> Tensor:
    """-log π(a|s) of every action of the batch."""
    batch = batch_of(kind)
    places = sequences_of(batch)
    policy = agent.actor(places.drop_last(agent.states(batch)))
    return -policy.log_prob(places.drop_first(batch.prev_action)[:, None]).mean()


# Critics in the actor's loss


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("critics", ["frozen", "trained"])
def test_the_policy_gradient_moves_the_critics_only_when_they_are_trained_by_it(critics, kind):
    learner = tiny_learner(kind, agent__critics_in_actor_loss=critics, **TERMS["actor"])
    grads = backward(learner, kind)
    assert (size(grads, "critics") > 0) == (critics == "trained")
    assert size(grads, "actor") > 0 and size(grads, "target_critics") == 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("critics", ["frozen", "trained"])
def test_the_policy_gradient_reaches_the_state_through_critics_that_it_trains(critics, kind):
    learner = tiny_learner(kind, agent__critics_in_actor_loss=critics, **TERMS["actor"])
    actor = learner.agent.actor
    real = actor.forward
    actor.forward = lambda state, mask=None: real(state.detach(), mask)
    grads = backward(learner, kind)
    for part in ("encoder", "memory"):
        assert (size(grads, part) > 0) == (critics == "trained")


@pytest.mark.parametrize("kind", KINDS)
def test_cloning_leaves_the_critics_alone_also_when_the_policy_gradient_trains_them(kind):
    learner = tiny_learner(kind, agent__critics_in_actor_loss="trained", **TERMS["cloning"])
    grads = backward(learner, kind)
    assert size(grads, "critics") == 0.0 and size(grads, "actor") > 0


# Encoder and memory in the actor's losses


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("encoder", ["trained", "frozen"])
def test_a_frozen_encoder_learns_from_the_critics_alone(encoder, term, kind):
    learner = tiny_learner(kind, agent__encoder_in_actor_loss=encoder, **TERMS[term])
    grads = backward(learner, kind)
    learns = encoder == "trained" or term == "critic"
    assert (size(grads, "encoder") > 0) == (size(grads, "memory") > 0) == learns
    assert size(grads, "critics" if term == "critic" else "actor") > 0


# Sequence models


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("models", ["shared", "target", "separate"])
def test_every_head_reads_the_sequence_model_that_is_its_own(models, kind):
    learner = tiny_learner(kind, agent__sequence_models=models)
    agent = learner.agent
    batch = batch_of(kind)
    places = sequences_of(batch)
    online = agent.states(batch)
    critic = agent.critic_trunk(batch) if models == "separate" else online
    slow = agent.target_trunk(batch) if models == "target" else None
    assert slow is None or not torch.equal(slow, online)
    assert models != "separate" or not torch.equal(critic, online)
    want = {
        "actor": places.drop_last(online),
        "critics": places.drop_last(critic),
        "target_actor": places.drop_first(online if slow is None else slow),
        "target_critics": places.drop_first(critic if slow is None else slow),
    }
    read: dict[str, Tensor] = {}
    for name in want:
        getattr(agent, name).register_forward_pre_hook(
            lambda _, arguments, name=name: read.update({name: arguments[0]})
        )
    losses(learner, batch_of(kind))
    assert all(torch.equal(read[name], want[name]) for name in want)
    assert not read["target_actor"].requires_grad and not read["target_critics"].requires_grad


@pytest.mark.parametrize("kind", KINDS)
def test_targets_follow_the_slow_copy_and_not_the_sequence_model_that_learns(kind):
    shared, slow = (tiny_learner(kind, agent__sequence_models=m) for m in ("shared", "target"))
    before = [numbers(learner, kind)[TARGET] for learner in (shared, slow)]
    for agent in (shared.agent, slow.agent):
        disturb(agent.encoder, agent.memory)
    after = [numbers(learner, kind)[TARGET] for learner in (shared, slow)]
    assert not torch.equal(before[0], after[0]) and torch.equal(before[1], after[1])
    disturb(slow.agent.target_trunk)
    assert not torch.equal(before[1], numbers(slow, kind)[TARGET])


@pytest.mark.parametrize("kind", KINDS)
def test_the_slow_copy_gets_no_gradient_and_moves_by_tau_after_the_step(kind):
    tau = 0.25
    learner = tiny_learner(kind, agent__sequence_models="target", agent__target_tau=tau)
    agent = learner.agent
    pairs = [
        *zip(agent.target_trunk.encoder.parameters(), agent.encoder.parameters(), strict=True),
        *zip(agent.target_trunk.memory.parameters(), agent.memory.parameters(), strict=True),
    ]
    assert len(pairs) == len(list(agent.target_trunk.parameters()))
    assert {id(slow) for slow, _ in pairs}.isdisjoint(map(id, learner.parameters))
    before = [(slow.clone(), online.detach().clone()) for slow, online in pairs]
    learner.step(batch_of(kind))
    for (slow, online), (slow_was, online_was) in zip(pairs, before, strict=True):
        assert slow.grad is None and not slow.requires_grad
        assert not torch.equal(online, online_was)
        want = slow_was + tau * (online.detach() - slow_was)
        torch.testing.assert_close(slow, want, atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_slow_copy_that_has_not_moved_yet_changes_nothing(kind):
    described = []
    for models in ("shared", "target"):
        torch.manual_seed(0)
        config = tiny_config(agent__sequence_models=models)
        agent = Agent(tiny_spec(kind), config).double()
        described.append(numbers(Learner(agent, config.agent, config.optim), kind))
    assert all(torch.equal(described[0][name], value) for name, value in described[1].items())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("term", TERMS)
def test_separate_sequence_models_learn_from_the_terms_of_their_own_heads(term, kind):
    learner = tiny_learner(kind, agent__sequence_models="separate", **TERMS[term])
    grads = backward(learner, kind)
    actors, critics = ("encoder", "memory"), ("critic_trunk.encoder", "critic_trunk.memory")
    mine, other = (critics, actors) if term == "critic" else (actors, critics)
    assert all(size(grads, part) > 0 for part in mine)
    assert all(size(grads, part) == 0.0 for part in other)


@pytest.mark.parametrize(("models", "trunk"), [("target", "target"), ("separate", "critic")])
def test_every_encoder_normalises_by_the_batches_that_it_was_shown(models, trunk):
    learner = tiny_learner(agent__sequence_models=models)
    own = learner.agent.encoder.normalizer
    other = getattr(learner.agent, f"{trunk}_trunk").encoder.normalizer
    other.load_state_dict(own.state_dict())
    before = copy.deepcopy(own.state_dict())
    learner.step(batch_of("discrete"))
    for name, value in own.state_dict().items():
        assert not torch.equal(value, before[name])
        assert torch.equal(value, other.state_dict()[name])


# Cloning without filter, and without policy gradient


@pytest.mark.parametrize("kind", KINDS)
def test_without_filter_every_action_is_cloned_with_weight_one(kind):
    learners = {f: tiny_learner(kind, terms__cloning__filter=f) for f in ("none", "binary")}
    want = cloning_loss(learners["none"].agent, kind).detach()
    described = {name: numbers(learner, kind) for name, learner in learners.items()}
    torch.testing.assert_close(described["none"]["loss/cloning"], want, atol=1e-12, rtol=0)
    assert float(described["none"]["cloning/accepted"]) == 1.0
    assert 0.0 < float(described["binary"]["cloning/accepted"]) < 1.0
    assert abs(float(described["binary"]["loss/cloning"] - want)) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_goal_conditioned_supervised_learning_teaches_the_actor_by_cloning_alone(kind):
    grads = backward(tiny_learner(kind, **GCSL), kind)
    by_hand = tiny_learner(kind, **GCSL).agent
    cloning_loss(by_hand, kind).backward()
    for name, want in gradients(by_hand).items():
        if name.startswith("actor"):
            assert want.any(), name
            torch.testing.assert_close(grads[name], want, atol=1e-12, rtol=0)
    assert size(grads, "critics") > 0


# The world model


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("encoder", ["trained", "frozen"])
def test_the_world_model_teaches_encoder_and_memory_and_no_head(encoder, kind):
    learner = tiny_learner(
        kind, terms__world_model__weight=1.0, agent__encoder_in_actor_loss=encoder, **NO_TERM
    )
    grads = backward(learner, kind)
    assert all(size(grads, part) > 0 for part in ("term_networks", "encoder", "memory"))
    assert size(grads, "actor") == size(grads, "critics") == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_the_world_model_adds_its_term_and_leaves_all_other_numbers_as_they_are(kind):
    weight = 0.1
    without, with_model = tiny_learner(kind), tiny_learner(kind, terms__world_model__weight=weight)
    weights = without.agent.state_dict()
    missing, unexpected = with_model.agent.load_state_dict(weights, strict=False)
    assert not unexpected and {name.split(".")[0] for name in missing} == {"term_networks"}
    before, after = (numbers(learner, kind) for learner in (without, with_model))
    error = after.pop("loss/world_model")
    assert error > 0
    torch.testing.assert_close(
        after.pop("loss/total"), before.pop("loss/total") + weight * error, atol=1e-12, rtol=0
    )
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    grads, same = (backward(learner, kind) for learner in (without, with_model))
    heads = [name for name in grads if name.startswith(("actor", "critics"))]
    assert heads and all(torch.equal(grads[name], same[name]) for name in heads)


def test_the_world_model_is_judged_by_changes_within_sequences_in_units_of_their_spread():
    learner = tiny_learner("discrete", terms__world_model__weight=1.0)
    batch, model = batch_of("discrete"), learner.agent.term_networks["world_model"]
    judged, error = [], model.error
    model.error = lambda forecast, change, *rest: (
        judged.append(change) or error(forecast, change, *rest)
    )
    losses(learner, batch)
    assert len(set(batch.lengths)) > 1
    places = [part.obs["place"].double() for part in sequences(batch)]
    differences = torch.cat([place[1:] - place[:-1] for place in places])
    mean, std = differences.mean(0), differences.std(0, unbiased=False)
    want = ((differences - mean) / std).clamp(-10, 10)
    (got,) = judged
    torch.testing.assert_close(got.double(), want, atol=1e-6, rtol=1e-5)
