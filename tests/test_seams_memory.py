"""Acting with a cache and training on a window are one function."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from counting_env import CountingEnv
from test_agent_helpers import (
    HORIZON,
    MEMORIES,
    in_double,
    random_batch,
    sequences,
    tiny_agent,
    tiny_config,
    tiny_learner,
    tiny_spec,
)

from amago.agent.agent import Agent, _build_memory
from amago.agent.policy import AgentPolicy
from amago.agent.update import Learner
from amago.config import override
from amago.envs.catalogue import preset
from amago.envs.vector import InProcessVector
from amago.nets.memory import cache
from amago.nets.memory.feedforward import FeedforwardMemory
from amago.nets.memory.gru import GRUMemory
from amago.nets.memory.transformer import TransformerMemory
from amago.nets.sequences import Sequences
from amago.nets.settings import MEMORIES as REGISTRY
from amago.replay.collate import collate
from amago.rollout.driver import drive
from amago.rollout.recorder import Recorder
from amago.types import Timestep

INPUT = 5
TRANSFORMERS = [name for name in MEMORIES if name not in ("gru", "feedforward")]
DTYPES = [(torch.float32, 1e-4), (torch.float64, 1e-9)]


def make_memory(name, dtype, context_length=HORIZON, horizon=HORIZON, seed=0):
    config = override(tiny_config(), MEMORIES[name] | {"replay.context_length": context_length})
    torch.manual_seed(seed)
    memory = _build_memory(config, tiny_spec(horizon=horizon), INPUT, None)
    with torch.no_grad():
        for parameter in memory.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return memory.to(dtype).eval()


def episodes_to_lanes(lengths, dtype, seed=1):
    """Per lane the episodes [(x, time)], and the same as a stream [steps, N]."""
    torch.manual_seed(seed)
    lanes = [
        [(torch.randn(n, INPUT, dtype=dtype), torch.arange(n)) for n in lane] for lane in lengths
    ]
    x = torch.stack([torch.cat([e[0] for e in lane]) for lane in lanes], 1)
    time = torch.stack([torch.cat([e[1] for e in lane]) for lane in lanes], 1)
    return lanes, x, time


@torch.no_grad()
def act(memory, x, time, state=None):
    state = memory.initial_state(x.shape[1]) if state is None else state
    outputs = []
    for row, now in zip(x, time, strict=True):
        output, state = memory.step(row, now, state)
        outputs.append(output.clone())
    return torch.stack(outputs)


@torch.no_grad()
def expected_states(lanes, forward):
    return torch.stack([torch.cat([forward(x, time) for x, time in lane]) for lane in lanes], 1)


def whole(memory):
    return lambda x, time: memory(x, time, Sequences([len(x)]))


RESETS = [[20, 1, 3], [7, 7, 10], [24], [1, 1, 12, 10], [24]]
"""Episodes of five lanes that reset at different times (and never in two of them)."""


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("name", MEMORIES)
def test_acting_equals_the_training_forward_whenever_lanes_reset(name, dtype, tolerance):
    memory = make_memory(name, dtype)
    lanes, x, time = episodes_to_lanes(RESETS, dtype)
    want = expected_states(lanes, whole(memory))
    torch.testing.assert_close(act(memory, x, time), want, atol=tolerance, rtol=0)


@pytest.mark.parametrize("name", MEMORIES)
def test_a_used_state_acts_like_a_fresh_one_once_every_lane_has_reset(name):
    memory = make_memory(name, torch.float64)
    _, x, time = episodes_to_lanes(RESETS, torch.float64)
    state = memory.initial_state(len(RESETS))
    act(memory, x + 1.0, time, state)
    if name != "gru":  # a GRU's state is a value, not a place
        torch.testing.assert_close(act(memory, x, time, state), act(memory, x, time))


@pytest.mark.parametrize("context_length", [5, HORIZON])
@pytest.mark.parametrize("name", MEMORIES)
def test_lanes_that_drop_out_change_nothing_for_the_others(name, context_length):
    memory = make_memory(name, torch.float64, context_length)
    _, x, time = episodes_to_lanes(RESETS, torch.float64)
    want = act(memory, x, time)
    state, lanes = memory.initial_state(len(RESETS)), np.arange(len(RESETS))
    for step in range(len(x)):
        if step in (6, 15):
            kept = np.array([0, 2, 3] if step == 6 else [1, 2])
            lanes, state = lanes[kept], memory.select(state, kept)
        with torch.no_grad():
            got, state = memory.step(x[step, lanes], time[step, lanes], state)
        torch.testing.assert_close(got, want[step, lanes])
    assert lanes.tolist() == [2, 3]


@pytest.mark.parametrize("name", [n for n in MEMORIES if n != "feedforward"])
def test_states_remember_earlier_rows_and_never_see_later_ones(name):
    memory = make_memory(name, torch.float64)
    x, time, forward = torch.randn(9, INPUT).double(), torch.arange(9), whole(memory)
    other = x.clone()
    other[4] += 1.0
    with torch.no_grad():
        difference = (forward(x, time) - forward(other, time)).abs().amax(-1)
    assert bool((difference[:4] == 0).all())
    assert bool((difference[4:] > 1e-6).all())


def test_the_memory_free_network_sees_one_row_only():
    memory = make_memory("feedforward", torch.float64)
    x, time, forward = torch.randn(9, INPUT).double(), torch.arange(9), whole(memory)
    other = x.clone()
    other[4] += 1.0
    with torch.no_grad():
        difference = (forward(x, time) - forward(other, time)).abs().amax(-1)
    assert (difference > 1e-6).nonzero().flatten().tolist() == [4]


# A Transformer by hand, from the paper (A.3).


def slow_norm(x, weights, name):
    centred = x - x.mean(-1, keepdim=True)
    normal = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return normal * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def slow_linear(x, weights, name, sigma_reparam):
    weight = weights[f"{name}.weight"]
    if sigma_reparam:
        sigma = weights[f"{name}.u"] @ weight @ weights[f"{name}.v"]
        weight = weights[f"{name}.gain"] / sigma * weight
    y = x @ weight.T
    return y + weights[f"{name}.bias"] if f"{name}.bias" in weights else y


def slow_rotation(vector, t):
    half = len(vector) // 2
    turned = vector.clone()
    for i in range(half):
        angle = torch.tensor(float(t) * 10_000.0 ** (-i / half), dtype=torch.float64)
        a, b = vector[i], vector[i + half]
        turned[i] = a * angle.cos() - b * angle.sin()
        turned[i + half] = a * angle.sin() + b * angle.cos()
    return turned


def slow_transformer(memory, x, time, band):
    """One episode [T, E]; row t attends to the rows t-band+1..t."""
    settings, w = memory.settings, dict(memory.state_dict())
    linear = partial(slow_linear, sigma_reparam=settings.sigma_reparam)
    width, heads = settings.model_dim, settings.num_heads
    size = width // heads
    rows = x
    x = linear(rows, w, "embed", sigma_reparam=False)
    if settings.previous_row:
        for t in range(1, len(rows)):
            x[t] += w["embed_previous.weight"] @ rows[t - 1]
    if settings.position == "learned":
        x = x + w["learned.table"][time]
    if settings.position == "sinusoid":
        for t, now in enumerate(time.tolist()):
            for i in range(width // 2):
                angle = torch.tensor(now * 10_000.0 ** (-i / (width // 2)), dtype=torch.float64)
                x[t, i] += angle.sin()
                x[t, i + width // 2] += angle.cos()
    for layer in range(settings.num_layers):
        name = f"blocks.{layer}"
        qkv = linear(slow_norm(x, w, f"{name}.norm_attention"), w, f"{name}.attention.qkv")
        mixed = torch.zeros_like(x)
        for h in range(heads):
            q, k, v = (
                qkv[:, part * width + h * size : part * width + (h + 1) * size].clone()
                for part in range(3)
            )
            if settings.position == "rope":
                q = torch.stack([slow_rotation(row, t) for row, t in zip(q, time, strict=True)])
                k = torch.stack([slow_rotation(row, t) for row, t in zip(k, time, strict=True)])
            for t in range(len(x)):
                seen = slice(max(0, t - band + 1), t + 1)
                weight = torch.softmax(k[seen] @ q[t] / size**0.5, 0)
                head = weight @ v[seen]
                if settings.extra_norms:
                    head = head * w[f"{name}.attention.head_scale"][h]
                mixed[t, h * size : (h + 1) * size] = head
        mixed = linear(mixed, w, f"{name}.attention.out")
        x = x + (slow_norm(mixed, w, f"{name}.norm_mixed") if settings.extra_norms else mixed)
        hidden = linear(slow_norm(x, w, f"{name}.norm_feedforward"), w, f"{name}.widen")
        slope = 0.01 if settings.activation == "leaky_relu" else 0.0
        hidden = torch.where(hidden > 0, hidden, slope * hidden)
        if settings.extra_norms:
            hidden = slow_norm(hidden, w, f"{name}.norm_hidden")
        x = x + linear(hidden, w, f"{name}.narrow")
    return slow_norm(x, w, "norm")


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_the_transformer_equals_the_blocks_of_the_method_computed_by_hand(name):
    memory = make_memory(name, torch.float64)
    x, time = torch.randn(8, INPUT, dtype=torch.float64), torch.arange(3, 11)
    with torch.no_grad():
        want = slow_transformer(memory, x, time, band=8)
        torch.testing.assert_close(whole(memory)(x, time), want, atol=1e-9, rtol=0)


SLIDING = [[19], [5, 14], [4, 4, 11], [9, 10], [1, 18]]
"""With a context of 4: lanes that slid several times, at phases 0..3, and two in lockstep."""


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_once_the_window_slid_acting_equals_banded_attention(name):
    memory = make_memory(name, torch.float64, context_length=4)
    lanes, x, time = episodes_to_lanes(SLIDING, torch.float64)
    want = expected_states(lanes, partial(slow_transformer, memory, band=4))
    torch.testing.assert_close(act(memory, x, time), want, atol=1e-9, rtol=0)
    unbanded = expected_states(lanes, whole(memory))
    assert float((want - unbanded).abs().max()) > 1e-3  # the band does matter here


@pytest.mark.parametrize("name", ["sinusoid", "learned", "rope", "previous row"])
def test_once_the_window_slid_acting_equals_banded_attention_in_single_precision(name):
    memory = make_memory(name, torch.float32, context_length=4)
    lanes, x, time = episodes_to_lanes(SLIDING, torch.float32)
    exact = copy.deepcopy(memory).double()
    reference = partial(slow_transformer, exact, band=4)
    want = expected_states([[(e.double(), t) for e, t in lane] for lane in lanes], reference)
    torch.testing.assert_close(act(memory, x, time).double(), want, atol=1e-4, rtol=0)


def test_a_lane_exactly_one_context_behind_another_shares_its_slot_but_not_its_rows():
    memory = make_memory("sinusoid", torch.float64, context_length=4)
    lanes, x, time = episodes_to_lanes([[12], [4, 8], [8, 4]], torch.float64)
    want = expected_states(lanes, partial(slow_transformer, memory, band=4))
    torch.testing.assert_close(act(memory, x, time), want, atol=1e-9, rtol=0)


def test_a_context_of_one_step_sees_the_current_row_only():
    memory = make_memory("rope", torch.float64, context_length=1)
    lanes, x, time = episodes_to_lanes([[6], [2, 4]], torch.float64)
    want = expected_states(lanes, partial(slow_transformer, memory, band=1))
    torch.testing.assert_close(act(memory, x, time), want, atol=1e-9, rtol=0)


def test_a_gru_equals_the_full_episode_however_long():
    memory = make_memory("gru", torch.float64, context_length=4)
    lanes, x, time = episodes_to_lanes(SLIDING, torch.float64)
    want = expected_states(lanes, whole(memory))
    torch.testing.assert_close(act(memory, x, time), want, atol=1e-9, rtol=0)


def masked_attention(band):
    """A drop-in for the fused kernel with an explicit band."""

    def attention(query, key, value, is_causal):
        assert is_causal
        steps = torch.arange(query.shape[-2])
        distance = steps[:, None] - steps
        scores = query @ key.mT / query.shape[-1] ** 0.5
        scores = scores.masked_fill((distance < 0) | (distance >= band), -torch.inf)
        return torch.softmax(scores, -1) @ value

    return attention


@pytest.mark.parametrize("context_length", [64, 65, 100, 150])
def test_storage_that_grows_keeps_all_rows_of_all_lanes(context_length, monkeypatch):
    memory = make_memory("rope", torch.float64, context_length=context_length, horizon=300)
    lanes, x, time = episodes_to_lanes([[210], [63, 147], [130, 80], [65, 145]], torch.float64)
    acted = act(memory, x, time)
    monkeypatch.setattr(
        torch.nn.functional, "scaled_dot_product_attention", masked_attention(context_length)
    )
    want = expected_states(lanes, whole(memory))
    torch.testing.assert_close(acted, want, atol=1e-9, rtol=0)


def test_a_step_costs_the_same_however_often_the_window_slid():
    memory = make_memory("sinusoid", torch.float32, context_length=6)
    state = memory.initial_state(2)
    sizes = set()
    with torch.no_grad():
        for t in range(100):
            _, state = memory.step(torch.randn(2, INPUT), torch.full((2,), t), state)
            if t >= 6:
                slots = tuple(span.slots for span in state.spans)
                sizes.add((state.keys.shape, state.values.shape, slots))
    assert len(sizes) == 1


@pytest.mark.parametrize("worth", [0, 3])
@pytest.mark.parametrize("context_length", [5, HORIZON])
def test_lanes_that_attend_in_several_spans_see_what_they_see_in_one(
    worth, context_length, monkeypatch
):
    memory = make_memory("sinusoid", torch.float64, context_length=context_length)
    _, x, time = episodes_to_lanes(RESETS, torch.float64)
    together = act(memory, x, time)
    monkeypatch.setattr(cache, "_WORTH_A_SPAN", worth)
    state, most = memory.initial_state(len(RESETS)), 0
    rows = []
    for row, now in zip(x, time, strict=True):
        with torch.no_grad():
            rows.append(memory.step(row, now, state)[0])
        most = max(most, len(state.spans))
    assert most > 1
    torch.testing.assert_close(torch.stack(rows), together, atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("filled", "spans"),
    [
        ([9, 9, 9], [(0, 3)]),
        ([1000, 1900, 2000], [(0, 3)]),  # 1,100 slots read for nothing: cheaper than a call
        ([10, 10, 3000, 3000], [(0, 2), (2, 4)]),
        ([10, 3000, 10, 3000], [(0, 1), (1, 2), (2, 3), (3, 4)]),
        ([3000, 2900, 2950, 5], [(0, 3), (3, 4)]),
        ([5000], [(0, 1)]),
    ],
)
def test_spans_end_where_reading_on_would_cost_more_than_a_call(filled, spans):
    assert cache._cut_lanes(np.array(filled)) == spans


# The same with everything around it: environment, recorder, encoder, policy.


class Spy:
    """Remembers the states that acting computed."""

    def __init__(self, agent):
        self.hidden, self._original = [], agent.actor.at_discount
        agent.actor.at_discount = self

    def __call__(self, state, index, mask=None):
        self.hidden.append(state.clone())
        return self._original(state, index, mask)


def counting_agent(name, double, **more):
    env = InProcessVector(partial(CountingEnv, 0), 4, 0, horizon=7)
    config = override(tiny_config(), MEMORIES[name] | more)
    torch.manual_seed(3)
    agent = Agent(env.spec, config)
    agent.encoder.normalizer.update(torch.randn(30, 4) * 20 + 5)
    return env, agent.double() if double else agent


class InDouble:
    """A policy whose rows arrive in double precision, as the network's weights are."""

    def __init__(self, policy):
        self.policy, self.initial_state = policy, policy.initial_state

    def act(self, rows, state):
        wide = {k: v.astype(np.float64) for k, v in rows.obs.items()}
        rows = replace(
            rows,
            obs=wide,
            prev_reward=rows.prev_reward.astype(np.float64),
        )
        return self.policy.act(rows, state)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("name", ["sinusoid", "learned", "rope", "pre-LN", "gru", "feedforward"])
def test_states_while_acting_in_an_environment_equal_those_of_the_recorded_rows(name, double):
    env, agent = counting_agent(name, double)
    spy, policy = Spy(agent), AgentPolicy(agent, seed=0)
    recorder = Recorder(env.spec, env.tasks)
    trajectories, seen = [], []
    for count, step in enumerate(drive(env, InDouble(policy) if double else policy)):
        seen.append([tuple(row.astype(int)) for row in step.rows.obs["observation"]])
        trajectories += recorder.add(step)
        if count == 30:
            break
    acted = {}
    for places, hidden in zip(seen, spy.hidden, strict=False):
        acted.update(zip(places, hidden, strict=True))
    batch = collate(trajectories, [0] * len(trajectories))
    if double:
        batch = in_double(batch)
    with torch.no_grad():
        states = agent.eval().states(batch).split(batch.lengths)
    compared = 0
    for part, trained in zip(sequences(batch), states, strict=True):
        for t in range(len(part) - 1):  # the final row of a rollout is never acted on
            place = tuple(part.obs["observation"][t].int().tolist())
            tolerance = 1e-9 if double else 1e-4
            torch.testing.assert_close(acted[place], trained[t], atol=tolerance, rtol=0)
            compared += 1
    assert compared > 60 and len(trajectories) > 15


def test_the_policy_of_one_discount_is_its_slice_of_all_policies():
    for kind in ("discrete", "continuous"):
        agent = tiny_agent(tiny_spec(kind), tiny_config())
        state = torch.randn(6, 16, dtype=torch.float64)
        whole_policy = agent.actor(state)
        for index in range(3):
            one = agent.actor.at_discount(state, index)
            torch.testing.assert_close(one.mode(), whole_policy.mode()[:, index])
            action = one.sample()
            torch.testing.assert_close(
                one.log_prob(action),
                whole_policy.log_prob(action[:, None])[:, index],
            )


# Effective weights are kept between the steps of acting.


def acting_states(memory, x, time):
    torch.manual_seed(0)
    return act(memory.eval(), x, time)


def fresh_copy(memory):
    """The same weights in a module that has never acted."""
    settings = memory.settings
    clone = TransformerMemory(
        INPUT, settings, context_length=memory.context_length, horizon=HORIZON
    )
    clone.load_state_dict(memory.state_dict())
    return clone.to(memory.embed.weight.dtype)


@pytest.mark.parametrize("foreach", [True, False])
def test_acting_uses_new_weights_after_an_optimiser_step(foreach):
    memory = make_memory("sinusoid", torch.float32)
    _, x, time = episodes_to_lanes([[5], [5]], torch.float32)
    before = acting_states(memory, x, time)
    for parameter in memory.parameters():
        parameter.grad = torch.ones_like(parameter)
    only_sigma = [p for name, p in memory.named_parameters() if "attention.qkv.weight" in name]
    torch.optim.AdamW(only_sigma, lr=0.1, foreach=foreach).step()
    after = acting_states(memory, x, time)
    assert float((after - before).abs().max()) > 1e-4
    torch.testing.assert_close(after, acting_states(fresh_copy(memory), x, time))


@pytest.mark.parametrize("part", ["weight", "gain", "u"])
def test_acting_uses_new_weights_after_loading_a_state(part):
    memory = make_memory("sinusoid", torch.float32)
    _, x, time = episodes_to_lanes([[5], [5]], torch.float32)
    before = acting_states(memory, x, time)
    state = {name: value.clone() for name, value in memory.state_dict().items()}
    torch.manual_seed(5)
    name = f"blocks.0.attention.out.{part}"
    state[name] = state[name] * 1.3 + 0.1 * torch.randn_like(state[name])
    memory.load_state_dict(state)
    after = acting_states(memory, x, time)
    assert not torch.equal(after, before)
    torch.testing.assert_close(after, acting_states(fresh_copy(memory), x, time))


def test_acting_uses_new_weights_after_loading_a_state_by_assignment():
    memory = make_memory("sinusoid", torch.float32)
    _, x, time = episodes_to_lanes([[5], [5]], torch.float32)
    acting_states(memory, x, time)
    other = make_memory("sinusoid", torch.float32, seed=9)
    memory.load_state_dict({k: v.clone() for k, v in other.state_dict().items()}, assign=True)
    torch.testing.assert_close(acting_states(memory, x, time), acting_states(other, x, time))


def test_acting_uses_new_weights_after_a_power_iteration():
    memory = make_memory("sinusoid", torch.float32)
    _, x, time = episodes_to_lanes([[5], [5]], torch.float32)
    before = acting_states(memory, x, time)
    memory.blocks[0].widen.power_iterate()
    after = acting_states(memory, x, time)
    assert not torch.equal(after, before)
    torch.testing.assert_close(after, acting_states(fresh_copy(memory), x, time))


def test_acting_goes_on_after_the_network_changed_its_precision():
    memory = make_memory("sinusoid", torch.float32)
    _, x, time = episodes_to_lanes([[5], [5]], torch.float32)
    acting_states(memory, x, time)
    memory.double()
    lanes, x, time = episodes_to_lanes([[5], [5]], torch.float64)
    want = expected_states(lanes, whole(fresh_copy(memory).eval()))
    torch.testing.assert_close(acting_states(memory, x, time), want, atol=1e-9, rtol=0)


def test_after_a_learner_step_acting_equals_training_with_the_new_weights():
    learner: Learner = tiny_learner(double=False, optim__learning_rate=0.05)
    agent, spec = learner.agent, tiny_spec()
    batch = random_batch(spec, [6, 6], double=False)
    spy, policy = Spy(agent), AgentPolicy(agent, seed=0)

    def act_on_batch():
        spy.hidden.clear()
        state = policy.initial_state(2)
        for t in range(6):
            no, now = np.zeros(2, bool), [t, 6 + t]
            rows = Timestep(
                {k: v[now].numpy() for k, v in batch.obs.items()},
                batch.prev_action[now].numpy(), batch.prev_reward[now].numpy(),
                batch.time[now].numpy(), batch.first[now].numpy(), no, no, np.zeros(2, np.int64),
            )  # fmt: skip
            _, state = policy.act(rows, state)
        return torch.stack(spy.hidden, 1).flatten(0, 1)

    before = act_on_batch()
    for _ in range(3):
        learner.step(batch)
        after = act_on_batch()
        with torch.no_grad():
            torch.testing.assert_close(after, agent.eval().states(batch), atol=1e-4, rtol=0)
        assert float((after - before).abs().max()) > 1e-3
        before = after


@pytest.mark.parametrize("name", ["gru", "feedforward"])
def test_other_memories_are_as_wide_and_deep_as_the_transformer_they_replace(name: str) -> None:
    config = override(preset("dark-key-to-door/paper"), {"memory": name})
    memory = _build_memory(config, tiny_spec(horizon=HORIZON), INPUT, None)
    shape = (memory.output_dim, config.transformer.num_layers)
    assert shape == (256, 3)
    if isinstance(memory, GRUMemory):
        assert (memory.gru.hidden_size, memory.gru.num_layers) == shape
    else:
        assert isinstance(memory, FeedforwardMemory) and len(memory.blocks) == 3
        assert memory.blocks[0][0].weight.shape == (4 * 256, 256)


def test_every_memory_of_the_registry_goes_through_these_tests():
    tested = {settings.get("memory", "transformer") for settings in MEMORIES.values()}
    assert tested == set(REGISTRY)
