"""The yardstick computes what amago computes; otherwise being faster than it means nothing."""

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np
import pytest
import torch
from test_agent_helpers import TINY, random_batch

from amago.agent.agent import Agent
from amago.agent.policy import AgentPolicy
from amago.agent.update import Learner
from amago.bench.plain.agent import PlainAgent
from amago.bench.plain.learner import PlainLearner, padded
from amago.bench.plain.policy import PlainPolicy
from amago.config import Config, override
from amago.envs.registry import make_vector
from amago.types import ActionSpec, EnvSpec, ObsSpec, Timestep

SPEC = EnvSpec(
    "reals", {"place": ObsSpec((2,), "float32"), "room": ObsSpec((1,), "float32")},
    ActionSpec("discrete", 3), 24,
)  # fmt: skip
NAMES = {
    r"^encoder\.net\.": "encoder.",
    r"^encoder\.norm\.": "encoder_norm.",
    r"^encoder\.normalizer\.": "normalizer.",
    r"^memory\.blocks\.(\d+)\.attention\.": r"blocks.\1.",
    r"^memory\.": "",
    r"^(target_)?actor\.trunk\.": r"\1actor.",
}


def _copied(agent: Agent, config: Config) -> Any:
    """A plain agent with the weights and statistics of one of amago's."""
    twin = PlainAgent(agent.spec, config)
    state: dict[str, torch.Tensor] = {"discounts": agent.discounts}
    for name, tensor in agent.state_dict().items():
        for pattern, replacement in NAMES.items():
            name = re.sub(pattern, replacement, name)
        output = 2 * len(config.heads.hidden)
        name = re.sub(r"^(target_)?actor\.out\.", rf"\1actor.{output}.", name)
        ensemble = re.match(r"^((?:target_)?critics)\.layers\.(\d+)\.(\w+)$", name)
        if ensemble is None:
            state[name] = tensor
            continue
        owner, layer, kind = ensemble.groups()
        for member, value in enumerate(tensor):
            key = f"{owner}.{member}.{2 * int(layer)}.{kind}"
            state[key] = value.T if kind == "weight" else value[0]
    twin.load_state_dict({name: tensor.clone() for name, tensor in state.items()})
    return twin


def _pair(**overrides: Any) -> tuple[Learner, Any]:
    config = override(Config(), TINY | {"heads.popart_rate": 0.2} | overrides)
    torch.manual_seed(0)
    agent = Agent(SPEC, config)
    with torch.no_grad():
        for parameter in agent.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return Learner(agent, config.agent, config.optim), PlainLearner(_copied(agent, config))


def _batch(seed: int) -> Any:
    batch = random_batch(SPEC, [9, 4, 7], seed=seed, double=False)
    batch.obs["room"] = batch.obs["room"].float()[..., None]
    return batch


@pytest.mark.parametrize("floor", [0.0, 1e-3])
def test_updates_of_the_plain_learner_equal_amagos(floor: float) -> None:
    """Three updates: losses and gradient norms of each, then weights, targets and statistics."""
    ours, theirs = _pair(**{"heads.probability_floor": floor})
    for seed in range(3):
        mine, other = ours.step(_batch(seed)), theirs.step(_batch(seed))
        for name in ("loss/critic", "loss/actor", "loss/cloning", "loss/total", "grad/norm"):
            assert float(mine[name]) == pytest.approx(float(other[name]), rel=1e-4), (seed, name)
    wanted = _copied(ours.agent, theirs.agent.config).state_dict()
    for name, tensor in theirs.agent.state_dict().items():
        torch.testing.assert_close(
            tensor, wanted[name], rtol=1e-3, atol=2e-5, msg=lambda m, n=name: f"{n}: {m}"
        )


def test_both_draw_the_same_critics_for_the_target_from_the_same_seed() -> None:
    ours, theirs = _pair(**{"agent.target_critics": 1})
    losses = []
    for learner in (ours, theirs):
        torch.manual_seed(5)
        losses.append(float(learner.step(_batch(0))["loss/critic"]))
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_padding_changes_no_loss_of_the_plain_learner() -> None:
    """The yardstick computes padded rows, but what they hold must not count."""
    _, learner = _pair()
    clean, dirty = padded(_batch(0)), padded(_batch(0))
    dirty.prev_reward[~dirty.valid] = 1e3
    dirty.obs["place"][~dirty.valid] = -1e3
    assert int((~dirty.valid).sum()) == 7
    losses = [copy.deepcopy(learner).losses(batch)["loss/total"] for batch in (clean, dirty)]
    assert torch.equal(*losses)


def test_acting_without_a_cache_equals_acting_with_one() -> None:
    """Probabilities would hide nothing: greedy actions follow from states that must agree."""
    maze = {"env.id": "amago/TMaze-v0", "env.kwargs": {"corridor": 5}}
    config = override(Config(), TINY | maze)
    env = make_vector(config.env, seed=0, num_lanes=16)
    torch.manual_seed(0)
    agent = Agent(env.spec, config)
    with torch.no_grad():
        for parameter in agent.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    ours = AgentPolicy(agent, seed=0, greedy=True)
    theirs = PlainPolicy(_copied(agent, config), greedy=True)
    memory = theirs.initial_state(env.num_lanes)
    rng = np.random.default_rng(0)
    seen: set[int] = set()
    rows = env.reset()
    state = ours.initial_state(env.num_lanes)
    for _ in range(15):  # two rollouts and a half
        mine, state = ours.act(rows, state)
        other, memory = theirs.act(rows, memory)
        assert mine.tolist() == other.tolist()
        seen |= set(mine.tolist())
        rows = env.step(rng.integers(4, size=16)).rows
    assert len(seen) > 1, "a policy that always does the same proves nothing"


def test_lanes_of_different_age_do_not_see_each_others_past() -> None:
    """One lane restarts in the middle: from there on it acts as one that was never older."""
    ours, theirs = _pair()
    policy = PlainPolicy(theirs.agent)
    cached = AgentPolicy(ours.agent, seed=0, greedy=True)
    rng = np.random.default_rng(0)
    state, memory = cached.initial_state(8), policy.initial_state(8)
    policy.greedy = True
    for step in range(12):
        time = np.full(8, step)
        time[:4] = step % 5
        rows = _timestep(rng, time)
        mine, state = cached.act(rows, state)
        other, memory = policy.act(rows, memory)
        assert mine.tolist() == other.tolist()


def _timestep(rng: np.random.Generator, time: Any) -> Any:
    lanes = len(time)
    flags = np.zeros(lanes, bool)
    return Timestep(
        obs={"place": rng.normal(size=(lanes, 2)).astype("f4"),
             "room": rng.normal(size=(lanes, 1)).astype("f4")},
        prev_action=rng.integers(3, size=lanes),
        prev_reward=rng.normal(size=lanes).astype("f4"),
        time=time, first=time == 0, terminal=flags, last=flags, world_seed=np.zeros(lanes, int),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "config"),
    [
        (EnvSpec("c", SPEC.obs, ActionSpec("continuous", 2), 24), {}),
        (EnvSpec("c", {"id": ObsSpec((), "uint8", "category", 3)}, SPEC.action, 24), {}),
        (SPEC, {"memory": "gru"}),
    ],
)
def test_the_plain_agent_refuses_what_it_does_not_implement(spec: Any, config: Any) -> None:
    with pytest.raises(ValueError, match="expects discrete actions, real-valued observations"):
        PlainAgent(spec, override(Config(), TINY | config))
