"""The update (paper, equations 1 to 6) against a slow, independent computation of it."""

from __future__ import annotations

import copy
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from test_agent_helpers import (
    DISCOUNTS,
    changed,
    losses,
    noise_of,
    predictable_samples,
    random_batch,
    sequences,
    snapshot,
    tiny_config,
    tiny_learner,
    tiny_spec,
)

from amago.agent import transitions as transitions_module
from amago.agent.agent import Agent, Parts
from amago.agent.settings import _CONTINUOUS_DISCOUNTS, DISCRETE_DISCOUNTS, AgentSettings
from amago.agent.targets import draw_critics, td_target
from amago.agent.terms import Term, TermSettings, build_terms
from amago.agent.terms.cloning import _exponential_filter, binary_filter
from amago.agent.update import Learner

# Parts


def test_td_targets_equal_numbers_made_by_hand():
    reward = torch.tensor([1.0, -2.0, 3.0])
    done = torch.tensor([False, False, True])
    values = torch.tensor(
        [
            [[10.0, 20.0], [1.0, -1.0], [5.0, 5.0]],
            [[8.0, 30.0], [2.0, -4.0], [9.0, 9.0]],
        ]
    )
    got = td_target(reward, done, values, torch.tensor([0.5, 0.9]))
    want = [[1 + 0.5 * 8, 1 + 0.9 * 20], [-2 + 0.5 * 1, -2 + 0.9 * -4], [3.0, 3.0]]
    torch.testing.assert_close(got, torch.tensor(want))


def test_critics_of_a_target_are_drawn_without_replacement_and_evenly():
    torch.manual_seed(0)
    counts = np.zeros((4, 4))
    for _ in range(3000):
        a, b = draw_critics(4, 2, torch.device("cpu")).tolist()
        assert a != b
        counts[a, b] += 1
    pairs = counts[~np.eye(4, dtype=bool)]
    assert float(((pairs - 250) ** 2 / 250).sum()) < 37.4  # 11 degrees, 1 in 10,000


def test_the_binary_filter_accepts_strictly_positive_advantages():
    got = binary_filter(torch.tensor([[-1.0, 0.0], [1e-9, 5.0]]))
    assert got.tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_the_exponential_filter_is_a_bounded_exponential():
    got = _exponential_filter(torch.tensor([[-1.0, 0.0], [1.5, 100.0]]))
    want = [[math.exp(-1), 1.0], [math.exp(1.5), 20.0]]
    torch.testing.assert_close(got, torch.tensor(want))


def test_discount_sets_are_those_of_the_method():
    assert AgentSettings().resolve_discounts("discrete") == (
        0.7, 0.9, 0.93, 0.95, 0.98, 0.99, 0.992, 0.994, 0.995, 0.997, 0.998, 0.999, 0.9991,
        0.9992, 0.9993, 0.9994, 0.9995,
    )  # fmt: skip
    continuous = (0.9, 0.95, 0.99, 0.993, 0.996, 0.999)
    assert AgentSettings().resolve_discounts("continuous") == continuous
    wide = AgentSettings(discounts="wide")
    assert wide.resolve_discounts("discrete") == (0.1, 0.3, 0.5, *DISCRETE_DISCOUNTS)
    assert wide.resolve_discounts("continuous") == (0.1, 0.3, 0.5, *_CONTINUOUS_DISCOUNTS)


def test_the_acting_discount_is_single_joins_a_set_or_is_in_it_once():
    assert AgentSettings(discounts="single").resolve_discounts("discrete") == (0.999,)
    chosen = AgentSettings(discounts=(0.9, 0.5), acting_discount=0.8)
    assert chosen.resolve_discounts("discrete") == (0.5, 0.8, 0.9)
    chosen = AgentSettings(discounts=(0.9, 0.5), acting_discount=0.9)
    assert chosen.resolve_discounts("continuous") == (0.5, 0.9)


@pytest.mark.parametrize("acting", DISCOUNTS)
def test_acting_uses_the_policy_of_the_acting_discount(acting):
    agent = tiny_learner(agent__acting_discount=acting).agent
    assert float(agent.discounts[agent.acting_index]) == pytest.approx(acting)


def test_default_settings_are_those_of_the_method():
    from amago.config import Config

    agent, optim, heads, terms = (
        getattr(Config(), n) for n in ("agent", "optim", "heads", "terms")
    )
    assert (terms.actor.weight, terms.cloning.weight, terms.critic.weight) == (1.0, 0.1, 10.0)
    assert (agent.target_tau, agent.target_critics, heads.num_critics) == (0.003, 2, 4)
    assert (agent.reward_scale, agent.acting_discount, terms.cloning.filter) == (
        10.0,
        0.999,
        "binary",
    )
    assert (optim.grad_clip, optim.warmup_updates, heads.probability_floor) == (1.0, 500, 1e-3)
    assert Config().transformer.dropout == 0.05


# The whole loss, in loops


def leaky(x):
    return np.where(x > 0, x, 0.01 * x)


def arrays(tensor):
    return tensor.detach().numpy().copy()  # an update rescales critics in place


class SlowHeads:
    """Actor and critics of one agent (online or target), evaluated row by row in numpy."""

    def __init__(self, agent, actor, critics):
        self.kind, self.size = agent.spec.action.kind, agent.spec.action.size
        self.sizes = agent.spec.action.sizes
        self.discounts = arrays(agent.discounts)
        linear = [m for m in actor.modules() if isinstance(m, torch.nn.Linear)]
        self.actor = [(arrays(m.weight), arrays(m.bias)) for m in linear]
        self.critics = [(arrays(m.weight), arrays(m.bias)) for m in critics.layers]
        self.num_critics = len(self.critics[0][0])
        self.floor = 1e-3

    def policy(self, state, g, mask, floor=None):
        """Probabilities (discrete), or (mean, log_std)."""
        x = state
        for index, (weight, bias) in enumerate(self.actor):
            x = weight @ x + bias
            x = leaky(x) if index < len(self.actor) - 1 else x
        if self.kind == "continuous":
            x = x[g * 2 * self.size : (g + 1) * 2 * self.size]
            return x[: self.size], -5 + 3.5 * (np.tanh(x[self.size :]) + 1)
        x = x[g * self.size : (g + 1) * self.size]
        if self.kind == "discrete":
            return self.floored(x, mask, floor)
        if self.kind == "multi_binary":
            return [self.floored([0.0, logit], None, floor) for logit in x]
        starts = np.cumsum([0, *self.sizes])
        parts = [slice(a, b) for a, b in itertools.pairwise(starts)]
        return [
            self.floored(x[part], None if mask is None else mask[part], floor) for part in parts
        ]

    def floored(self, x, mask, floor):
        size = len(x)
        allowed = [a for a in range(size) if mask is None or mask[a]] or range(size)
        floor = min(self.floor if floor is None else floor, 0.1 / size)
        total = sum(math.exp(x[a]) for a in allowed)
        p = np.zeros(size)
        for a in allowed:
            p[a] = (1 - len(allowed) * floor) * math.exp(x[a]) / total + floor
        return p

    def row(self, values):
        """The features of one value per dimension."""
        if self.kind == "multi_binary":
            return np.array(values, float)
        return np.concatenate([np.eye(n)[v] for n, v in zip(self.sizes, values, strict=True)])

    def output(self, c, state, g, action):
        """What critic c puts out, on the scale it was made for."""
        x = state
        if self.kind in ("multi_discrete", "multi_binary"):
            action = self.row(action)
        if self.kind != "discrete":
            horizon = math.log1p(1 / (1 - self.discounts[g]))
            x = np.concatenate((state, action, [np.float32(horizon)]))
        for index, (weight, bias) in enumerate(self.critics):
            x = x @ weight[c] + bias[c, 0]
            x = leaky(x) if index < len(self.critics) - 1 else x
        return x[g * self.size + action] if self.kind == "discrete" else x[g]

    def expected(self, c, state, g, mask, scale):
        """E_π of scale(output), by sum or by one sample with the agreed noise."""
        policy = self.policy(state, g, mask)
        if self.kind == "discrete":
            return sum(policy[a] * scale(self.output(c, state, g, a)) for a in range(self.size))
        if self.kind != "continuous":
            values = [int(np.argmax(p)) for p in policy]
            total = 0.0
            for value, probability in enumerate(policy[1]):
                action = [values[0], value, *values[2:]]
                total += probability * scale(self.output(c, state, g, action))
            return total
        mean, log_std = policy
        action = np.tanh(mean + np.exp(log_std) * noise_of(mean))
        return scale(self.output(c, state, g, action))

    def log_prob(self, state, g, mask, action):
        policy = self.policy(state, g, mask, floor=0.0)
        if self.kind == "discrete":
            return math.log(max(policy[action], np.finfo(np.float64).tiny))
        if self.kind != "continuous":
            chosen = [p[value] for p, value in zip(policy, action, strict=True)]
            return float(np.log(np.maximum(chosen, np.finfo(np.float64).tiny)).sum())
        total = 0.0
        for mean, log_std, a in zip(*policy, action, strict=True):
            a = min(max(a, -0.99), 0.99)
            z = (math.atanh(a) - mean) / math.exp(log_std)
            total += -0.5 * z * z - log_std - 0.5 * math.log(2 * math.pi) - math.log(1 - a * a)
        return total


class SlowPopArt:
    """Scale of one discount, and the scale that critics' outputs were made for."""

    def __init__(self, popart, g, rate):
        self.rate = rate
        self.mean, self.second = float(popart.mean[g]), float(popart.second[g])
        self.mass = float(popart.mass)
        self.made_for = self.moments()

    def moments(self):
        mu = self.mean / self.mass
        return mu, math.sqrt(max(self.second / self.mass - mu * mu, 1e-4))

    def raw(self, output):
        """The value an output stands for, which no update changes."""
        mu, sigma = self.made_for
        return sigma * output + mu

    def normalised(self, output):
        """That value on the current scale."""
        mu, sigma = self.moments()
        return (self.raw(output) - mu) / sigma

    def update(self, values):
        self.mean += self.rate * (sum(values) / len(values) - self.mean)
        self.second += self.rate * (sum(v * v for v in values) / len(values) - self.second)
        self.mass += self.rate * (1 - self.mass)


def slow_losses(learner, batch, drawn, rate):
    """{critic, actor, cloning, total}, each a mean over valid (b, t, γ)."""
    agent, settings, weights = learner.agent, learner.settings, learner.agent.config.terms
    online = SlowHeads(agent, agent.actor, agent.critics)
    target = SlowHeads(agent, agent.target_actor, agent.target_critics)
    critics = range(online.num_critics)
    transitions = []
    for row in sequences(batch):
        with torch.no_grad():
            states = arrays(agent.states(row))
        masks = row.obs.get("action_mask")
        masks = None if masks is None else arrays(masks)
        for t in range(len(states) - 1):
            action = arrays(row.prev_action[t + 1])
            transitions.append(
                (
                    states[t], states[t + 1],
                    int(action) if online.kind == "discrete" else action,
                    float(row.prev_reward[t + 1]) * settings.reward_scale,
                    bool(row.terminal[t + 1]),
                    None if masks is None else masks[t], None if masks is None else masks[t + 1],
                )
            )  # fmt: skip
    sums, count = {"critic": 0.0, "actor": 0.0, "cloning": 0.0}, 0
    accepted = []
    for g, discount in enumerate(online.discounts):
        popart = SlowPopArt(agent.popart, g, rate)
        ys = []
        for _, after, _, reward, done, _, mask in transitions:
            value = min(target.expected(c, after, g, mask, popart.raw) for c in drawn)
            ys.append(reward + (0.0 if done else float(discount) * value))
        popart.update(ys)
        mu, sigma = popart.moments()
        for (state, _, action, _, _, mask, _), y in zip(transitions, ys, strict=True):
            q = [popart.normalised(online.output(c, state, g, action)) for c in critics]
            v = [online.expected(c, state, g, mask, popart.normalised) for c in critics]
            sums["critic"] += sum((x - (y - mu) / sigma) ** 2 for x in q) / len(q)
            sums["actor"] += -min(v)
            advantage = sum(q) / len(q) - sum(v) / len(v)
            binary = weights.cloning.filter == "binary"
            weight = float(advantage > 0) if binary else min(math.exp(advantage), 20.0)
            accepted.append(weight)
            sums["cloning"] += -weight * online.log_prob(state, g, mask, action)
            count += 1
    means = {name: value / count for name, value in sums.items()}
    means["total"] = (
        weights.critic.weight * means["critic"]
        + weights.actor.weight * means["actor"]
        + weights.cloning.weight * means["cloning"]
    )
    assert sum(accepted) > 0 and min(accepted) != max(accepted)
    return means


@pytest.mark.parametrize("rate", [5e-4, 0.3])  # 0.3: the scales before and after are far apart
@pytest.mark.parametrize("bc_filter", ["binary", "exponential"])
@pytest.mark.parametrize(
    ("kind", "mask"),
    [
        ("discrete", False),
        ("discrete", True),
        ("continuous", False),
        ("multi_discrete", False),
        ("multi_discrete", True),
        ("multi_binary", False),
    ],
)
def test_the_total_loss_equals_loops_over_transitions_discounts_and_critics(
    kind, mask, bc_filter, rate, monkeypatch
):
    learner = tiny_learner(kind, mask=mask, terms__cloning__filter=bc_filter)
    assert learner.agent.popart.rate == 5e-4
    learner.agent.popart.rate = rate
    batch = random_batch(tiny_spec(kind, mask=mask), [6, 3, 5], starts=[0, 4, 2], seed=3)
    drawn = [2, 0]
    monkeypatch.setattr(transitions_module, "draw_critics", lambda *_: torch.tensor(drawn))
    want = slow_losses(learner, batch, drawn, rate)
    with predictable_samples():
        total, metrics = losses(learner, batch)
    for name, value in want.items():
        assert float(metrics[f"loss/{name}"]) == pytest.approx(value, abs=1e-5), name
    assert float(total.detach()) == pytest.approx(want["total"], abs=1e-5)


def probe(agent, kind, double=True):
    """Values [C, M, G] of online and target critics at states and actions of no batch."""
    dtype = torch.float64 if double else torch.float32
    generator = torch.Generator().manual_seed(5)
    state = torch.randn(7, agent.memory.output_dim, generator=generator, dtype=dtype)
    action = torch.randn(7, agent.spec.action.size, generator=generator, dtype=dtype).tanh()
    action = action.argmax(-1) if kind == "discrete" else action
    heads = {"online": agent.critics, "target": agent.target_critics}
    with torch.no_grad(), predictable_samples():
        found = {}
        for name, head in heads.items():
            actor = agent.actor if name == "online" else agent.target_actor
            values = head(state, agent.popart)
            found[name, "taken"] = values.at(action)
            found[name, "expected"] = values.under(actor(state))
            if kind == "discrete":
                for a in range(agent.spec.action.size):
                    found[name, a] = values.at(torch.full((7,), a))
        return {key: (value.raw, value.normalised) for key, value in found.items()}


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("rate", [5e-4, 0.3])
@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_losses_move_the_statistics_and_no_value_of_any_critic_at_any_discount(kind, rate, double):
    learner = tiny_learner(kind, double=double)
    agent = learner.agent
    agent.popart.rate = rate
    old = [x.clone() for x in agent.popart.statistics()]
    before = probe(agent, kind, double)
    for seed in range(5):
        batch = random_batch(tiny_spec(kind), [6, 3, 5], seed=seed, double=double)
        losses(learner, batch)
    after = probe(agent, kind, double)
    for was, now in zip(old, agent.popart.statistics(), strict=True):
        assert float((now - was).abs().min()) > 1e-4
    tolerance = 1e-10 if double else 1e-6
    for key, (raw, normalised) in before.items():
        assert raw.shape == (3, 7, len(DISCOUNTS))
        for g in range(len(DISCOUNTS)):
            torch.testing.assert_close(
                after[key][0][..., g], raw[..., g], atol=tolerance, rtol=tolerance
            )
            moved = (after[key][1][..., g] - normalised[..., g]).abs().max()
            assert float(moved) > 1e-4, (key, g)


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_the_first_losses_of_a_life_set_the_scale_and_leave_all_weights_alone(kind):
    learner = tiny_learner(kind)
    agent = learner.agent
    agent.popart.__init__(len(DISCOUNTS))
    before = {name: p.detach().clone() for name, p in agent.named_parameters()}
    losses(learner, random_batch(tiny_spec(kind), [6, 3, 5]))
    assert all(torch.equal(p, before[name]) for name, p in agent.named_parameters())
    assert float(agent.popart.mass) == 5e-4
    losses(learner, random_batch(tiny_spec(kind), [6, 3, 5], seed=1))
    last = f"layers.{len(agent.critics.layers) - 1}"
    moved = {n for n, p in agent.named_parameters() if not torch.equal(p, before[n])}
    assert moved == {
        f"{head}.{last}.{x}" for head in ("critics", "target_critics") for x in ("weight", "bias")
    }


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_without_popart_losses_leave_all_weights_and_statistics_alone(kind):
    learner = tiny_learner(kind, heads__popart=False)
    learner.agent.popart.__init__(len(DISCOUNTS), enabled=False)
    before = snapshot(learner.agent)
    for seed in range(3):
        losses(learner, random_batch(tiny_spec(kind), [6, 3, 5], seed=seed))
    assert changed(learner.agent, before) == []


def test_the_drawn_critics_alone_make_the_target(monkeypatch):
    learner = tiny_learner()
    batch = random_batch(tiny_spec(), [6, 3])
    seen = []
    for drawn in ([0], [1], [2]):
        monkeypatch.setattr(transitions_module, "draw_critics", lambda *_, d=drawn: torch.tensor(d))
        seen.append(float(losses(copy.deepcopy(learner), batch)[1]["value/target@0.99"]))
    assert len(set(seen)) == 3


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_without_popart_losses_stand_on_the_scale_of_the_rewards(kind):
    learner = tiny_learner(kind, heads__popart=False)
    learner.agent.popart.__init__(len(DISCOUNTS), enabled=False)
    batch = random_batch(tiny_spec(kind), [6, 3])
    before = {k: v.clone() for k, v in learner.agent.popart.state_dict().items()}
    small = learner.step(batch)
    assert all(torch.equal(v, learner.agent.popart.state_dict()[k]) for k, v in before.items())
    huge = tiny_learner(kind, heads__popart=False, agent__reward_scale=10_000.0)
    huge.agent.popart.__init__(len(DISCOUNTS), enabled=False)
    assert float(huge.step(batch)["loss/critic"]) > 1e4 * float(small["loss/critic"])


def test_terms_need_a_name_a_weight_and_names_of_their_own():
    class Nameless(Term):
        weight = 1.0

    class Weightless(Term):
        name = "weightless"

    class Critic(Term):
        name, weight = "critic", 1.0

    assert [term.name for term in build_terms(TermSettings())] == ["critic", "actor", "cloning"]
    for bad in (Nameless(), Weightless()):
        with pytest.raises(ValueError, match=f"name and a weight, got {type(bad).__name__}"):
            build_terms(TermSettings(), [bad])
    with pytest.raises(ValueError, match="got 2 called 'critic'; rename yours"):
        build_terms(TermSettings(), [Critic()])


def test_the_total_is_the_weighted_sum_of_the_terms_that_are_logged():
    class Constant(Term):
        name, weight = "constant", 0.5

        def loss(self, transitions):
            return torch.full_like(transitions.reward, 3.0)

        def metrics(self, transitions):
            return {"constant/done": transitions.done.double().mean()}

    config = tiny_config()
    agent = Agent(tiny_spec(), config, Parts(terms=(Constant(),))).double()
    learner = Learner(agent, config.agent, config.optim)
    batch = random_batch(tiny_spec(), [6, 3, 5])
    total, metrics = losses(learner, batch)
    assert [term.name for term in agent.terms] == ["critic", "actor", "cloning", "constant"]
    assert float(metrics["loss/constant"]) == 3.0
    assert float(metrics["constant/done"]) == pytest.approx(2 / 11)
    want = sum(term.weight * float(metrics[f"loss/{term.name}"]) for term in agent.terms)
    assert float(total.detach()) == pytest.approx(want, abs=1e-12)


def test_no_torch_is_loaded_with_the_settings_of_terms():
    code = "import sys, amago.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


HORIZONS = [1, 2, 5, 24, 100, 400, 1000, 30_000, None]


@pytest.mark.parametrize("horizon", HORIZONS)
@pytest.mark.parametrize(("kind", "widest"), [("discrete", 4), ("continuous", 8)])
def test_discounts_follow_from_the_horizon(horizon, kind, widest):
    settings = AgentSettings(discounts="horizon", acting_discount=None)
    discounts = settings.resolve_discounts(kind, horizon)
    assert discounts[0] == 0.0  # rewards that come at once are always learned
    assert discounts[-1] == settings.resolve_acting(horizon)
    steps = 1 / (1 - np.array(discounts[1:]))
    assert steps[0] == pytest.approx(2.0)
    assert steps[-1] == pytest.approx(min(50.0, max(2.0, (horizon or 200) / 2)), rel=1e-2)
    factors = steps[1:] / steps[:-1]
    assert factors == pytest.approx(factors.mean(), rel=1e-2) if len(factors) else True
    assert all(factor < widest for factor in factors)


def test_an_acting_discount_that_is_given_ends_the_ladder():
    settings = AgentSettings(discounts="horizon", acting_discount=0.9)
    assert settings.resolve_acting(1000) == 0.9
    assert max(settings.resolve_discounts("continuous", 1000)) == 0.9
