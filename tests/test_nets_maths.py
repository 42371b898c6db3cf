"""PopArt, σReparam, the normaliser and the encoder against plain loops."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from test_agent_helpers import random_batch, snapshot, tiny_agent, tiny_config, tiny_spec
from torch import Tensor

from amago.nets.action import previous_action
from amago.nets.actor import Actor
from amago.nets.critic import _ContinuousCritics, _DiscreteCritics, build_critics
from amago.nets.layers import SigmaLinear, power_iterate, symlog
from amago.nets.normalize import RunningNormalizer
from amago.nets.settings import EncoderSettings, HeadSettings
from amago.nets.timestep import MLPEncoder
from amago.nets.value import PopArt, ScalarValue
from amago.nets.world_model import WorldModel
from amago.types import ActionSpec

# PopArt


class PlainAverage:
    """Bias-corrected EMA of mean and second moment, in plain Python, for one discount."""

    def __init__(self, rate):
        self.rate, self.mean, self.second, self.mass = rate, 0.0, 0.0, 0.0

    def add(self, values):
        mean = sum(values) / len(values)
        second = sum(v * v for v in values) / len(values)
        self.mean = (1 - self.rate) * self.mean + self.rate * mean
        self.second = (1 - self.rate) * self.second + self.rate * second
        self.mass = (1 - self.rate) * self.mass + self.rate

    def moments(self):
        return self.mean / self.mass, self.second / self.mass


def targets(scale, seed):
    torch.manual_seed(seed)
    offsets = torch.tensor([0.0, 5.0, -300.0], dtype=torch.float64)
    return scale * torch.randn(30, 3, dtype=torch.float64) + scale * offsets


@pytest.mark.parametrize("rate", [5e-4, 0.3])
def test_popart_statistics_are_a_bias_corrected_average_per_discount(rate):
    popart, plain = PopArt(3, rate=rate), [PlainAverage(rate) for _ in range(3)]
    for update, scale in enumerate((1.0, 10.0, 800.0, 0.1)):
        y = targets(scale, update)
        popart.update(y)
        mean, std = popart.statistics()
        for g in range(3):
            plain[g].add(y[:, g].tolist())
            mu, nu = plain[g].moments()
            assert float(mean[g]) == pytest.approx(mu, rel=1e-9)
            assert float(std[g]) == pytest.approx(math.sqrt(max(nu - mu * mu, 1e-4)), rel=1e-6)


def test_popart_defaults_are_those_of_the_method():
    popart = PopArt(2)
    assert popart.rate == 5e-4
    assert all(buffer.dtype == torch.float64 for buffer in popart.buffers())
    assert list(popart.parameters()) == []


def test_the_first_update_of_popart_rescales_nothing():
    popart = PopArt(3)
    scale, shift = popart.update(targets(50.0, 0))
    assert torch.equal(scale, torch.ones(3).double())
    assert torch.equal(shift, torch.zeros(3).double())
    mean, std = popart.statistics()
    torch.testing.assert_close(mean, targets(50.0, 0).mean(0))
    assert float((std - 50.0).abs().max()) < 20.0


@pytest.mark.parametrize("rate", [5e-4, 0.3])
def test_popart_preserves_outputs_through_every_later_change_of_statistics(rate):
    popart = PopArt(3, rate=rate)
    popart.update(targets(1.0, 0))
    output = torch.randn(4, 6, 3, dtype=torch.float64)
    before, first = ScalarValue(output, popart).raw, output
    for update, size in enumerate((3.0, 800.0, 0.01, 20.0)):
        (mean, std), move = popart.statistics(), popart.update(targets(size, update + 1))
        new_mean, new_std = popart.statistics()
        torch.testing.assert_close(move[0], std / new_std, rtol=1e-12, atol=0)
        torch.testing.assert_close(move[1], (mean - new_mean) / new_std, rtol=1e-12, atol=1e-12)
        output = output * move[0] + move[1]
        torch.testing.assert_close(ScalarValue(output, popart).raw, before, rtol=1e-6, atol=1e-6)
    assert float((output - first).abs().max()) > 1e-3


def test_an_empty_batch_of_targets_moves_nothing():
    popart = PopArt(3)
    popart.update(targets(3.0, 0))
    before = snapshot(popart)
    scale, shift = popart.update(targets(3.0, 1)[:0])
    assert torch.equal(scale, torch.ones(3).double()) and not shift.any()
    assert all(torch.equal(v, popart.state_dict()[k]) for k, v in before.items())


def critics_of(kind, dtype):
    """Critics of three discounts, states and actions for them."""
    torch.manual_seed(0)
    settings = HeadSettings(hidden=(7, 5), num_critics=4)
    if kind == "discrete":
        critics = _DiscreteCritics(3, ActionSpec("discrete", 2), 3, settings)
        action = torch.randint(2, (9,))
    else:
        critics = _ContinuousCritics(3, ActionSpec("continuous", 2), (0.5, 0.9, 0.99), settings)
        action = torch.randn(9, 2).tanh().to(dtype)
    return critics.to(dtype), torch.randn(9, 3).to(dtype), action


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-6)])
@pytest.mark.parametrize("kind", ["discrete", "continuous"])
@pytest.mark.parametrize("rate", [5e-4, 0.3])
def test_rescaled_critics_keep_every_value_at_every_discount(rate, kind, dtype, tolerance):
    critics, state, action = critics_of(kind, dtype)
    popart = PopArt(3, rate=rate)
    offsets = torch.tensor([0.0, 1.0, -2.0])
    critics.rescale(*popart.update(torch.randn(30, 3) + offsets))
    with torch.no_grad():
        first = critics(state, popart).at(action)
        before = first.raw  # now: a value is read on the scale that holds when asked
        for size in (3.0, 0.5, 2.0, 0.1, 4.0):
            critics.rescale(*popart.update(size * (torch.randn(30, 3) + offsets)))
            after = critics(state, popart).at(action)
            for g in range(3):
                torch.testing.assert_close(
                    after.raw[..., g], before[..., g], rtol=tolerance, atol=tolerance
                )
    moved = (after.normalised - first.normalised).abs().amax((0, 1))
    assert float(moved.min()) > 1e-3


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_rescaling_maps_the_outputs_of_each_discount_by_its_own_scale_and_shift(kind):
    critics, state, action = critics_of(kind, torch.float64)
    before = snapshot(critics)
    scale, shift = torch.tensor([2.0, 0.5, 3.0]).double(), torch.tensor([0.0, -4.0, 7.0]).double()
    with torch.no_grad():
        old = critics(state, PopArt(3)).at(action).normalised
        critics.rescale(scale, shift)
        new = critics(state, PopArt(3)).at(action).normalised
    for g in range(3):
        want = float(scale[g]) * old[..., g] + float(shift[g])
        torch.testing.assert_close(new[..., g], want, rtol=1e-12, atol=1e-12)
    moved = {k for k, v in before.items() if not torch.equal(v, critics.state_dict()[k])}
    assert moved == {"layers.2.weight", "layers.2.bias"}
    assert all(p.requires_grad and p.grad_fn is None for p in critics.parameters())


def test_popart_normalises_and_denormalises_with_its_statistics():
    popart = PopArt(1, rate=0.5)
    popart.update(torch.tensor([[1.0], [3.0]]))  # mean 2, second moment 5, variance 1
    assert popart.normalise(torch.tensor([[4.0]])).item() == pytest.approx(2.0)
    assert popart.denormalise(torch.tensor([[2.0]])).item() == pytest.approx(4.0)
    value = ScalarValue(torch.tensor([[[0.5]]]), popart)
    assert value.raw.item() == pytest.approx(2.5)
    assert value.loss(torch.tensor([[4.0]])).item() == pytest.approx((0.5 - 2.0) ** 2)


def test_the_deviation_of_popart_never_falls_below_one_hundredth():
    popart = PopArt(1)
    for _ in range(3):
        scale, shift = popart.update(torch.full((5, 1), 7.0))
        assert torch.isfinite(scale).all() and torch.isfinite(shift).all()
        assert scale.item() == pytest.approx(1.0) and shift.item() == pytest.approx(0.0, abs=1e-9)
    assert popart.statistics()[1].item() == pytest.approx(1e-2)


def test_popart_switched_off_is_the_identity():
    popart = PopArt(3, enabled=False)
    before = snapshot(popart)
    for update in range(2):
        scale, shift = popart.update(targets(800.0, update))
        assert torch.equal(scale, torch.ones(3).double())
        assert torch.equal(shift, torch.zeros(3).double())
    assert all(torch.equal(v, popart.state_dict()[k]) for k, v in before.items())
    x = torch.randn(2, 5, 3)
    value = ScalarValue(x, popart)
    assert torch.equal(value.raw, x) and torch.equal(value.normalised, x)
    assert torch.equal(popart.normalise(x), x)


# σReparam


def spectral_norm(matrix):
    return float(np.linalg.svd(matrix.detach().double().numpy(), compute_uv=False)[0])


@pytest.mark.parametrize("shape", [(6, 9), (9, 6), (5, 5), (1, 4), (4, 1)])
def test_the_effective_spectral_norm_is_the_gain_from_the_start(shape):
    torch.manual_seed(0)
    layer = SigmaLinear(*shape)
    assert spectral_norm(layer.effective_weight()) == pytest.approx(
        float(layer.gain.detach()), abs=1e-5
    )
    with torch.no_grad():
        layer.gain.fill_(2.5)
    assert spectral_norm(layer.effective_weight()) == pytest.approx(2.5, abs=1e-5)


def test_a_reparameterised_layer_starts_as_the_plain_one():
    torch.manual_seed(0)
    layer = SigmaLinear(20, 30)
    torch.manual_seed(0)
    plain = torch.nn.Linear(20, 30)
    x = torch.randn(5, 20)
    torch.testing.assert_close(layer(x), plain(x))


def test_power_iteration_finds_the_spectral_norm_of_a_changed_weight():
    torch.manual_seed(0)
    layer = SigmaLinear(7, 11).double()
    with torch.no_grad():
        layer.weight.copy_(torch.randn(11, 7))
    errors = []
    for _ in range(300):
        errors.append(abs(spectral_norm(layer.effective_weight()) - float(layer.gain.detach())))
        layer.power_iterate()
    assert errors[0] > 0.05
    assert errors[-1] < 1e-6
    sigma = float(layer.u @ layer.weight.detach() @ layer.v)
    assert sigma == pytest.approx(spectral_norm(layer.weight), rel=1e-6)


def test_one_power_iteration_is_v_then_u():
    layer = SigmaLinear(3, 2).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]]))
        layer.u.copy_(torch.tensor([1.0, 0.0]))
    layer.power_iterate()
    v = np.array([1.0, 2.0, 0.5]) / math.sqrt(5.25)
    wv = np.array([v @ [1.0, 2.0, 0.5], v @ [0.0, -1.0, 3.0]])
    np.testing.assert_allclose(layer.v.numpy(), v)
    np.testing.assert_allclose(layer.u.numpy(), wv / np.linalg.norm(wv))


def test_only_power_iteration_moves_the_singular_vectors():
    torch.manual_seed(0)
    layer = SigmaLinear(4, 3)
    u, v = layer.u.clone(), layer.v.clone()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    for mode in (True, False):
        layer.train(mode)
        layer(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
        with torch.no_grad():
            layer(torch.randn(2, 4))
    assert torch.equal(layer.u, u) and torch.equal(layer.v, v)
    power_iterate(torch.nn.Sequential(layer))
    assert not torch.equal(layer.u, u)
    assert not layer.u.requires_grad and not layer.v.requires_grad


def test_the_gradient_of_a_reparameterised_weight_is_that_of_the_formula():
    torch.manual_seed(0)
    layer = SigmaLinear(4, 3).double()
    with torch.no_grad():
        layer.weight.add_(torch.randn(3, 4))
    x = torch.randn(5, 4, dtype=torch.float64)
    layer(x).pow(3).sum().backward()
    weight = layer.weight.detach().clone()

    start = float(layer.gain.detach())

    def loss(w, gain=start):
        effective = gain / (layer.u @ w @ layer.v) * w
        return float((x @ effective.T + layer.bias.detach()).pow(3).sum())

    step = 1e-6
    for i, j in ((0, 0), (1, 2), (2, 3)):
        up, down = weight.clone(), weight.clone()
        up[i, j] += step
        down[i, j] -= step
        slope = (loss(up) - loss(down)) / (2 * step)
        assert float(layer.weight.grad[i, j]) == pytest.approx(slope, rel=1e-5, abs=1e-6)
    slope = (loss(weight, start + step) - loss(weight, start - step)) / (2 * step)
    assert float(layer.gain.grad) == pytest.approx(slope, rel=1e-5)


# Normaliser and encoder


def test_the_normaliser_is_a_bias_corrected_average_of_each_feature():
    normalizer, plain = RunningNormalizer(2, rate=0.1), [PlainAverage(0.1) for _ in range(2)]
    torch.manual_seed(0)
    for _ in range(5):
        x = torch.randn(7, 2, dtype=torch.float64) * 4 + 10
        normalizer.update(x)
        for f in range(2):
            plain[f].add(x[:, f].tolist())
    x = torch.randn(3, 2, dtype=torch.float64) + 10
    for f in range(2):
        mu, nu = plain[f].moments()
        want = (x[:, f] - mu) / math.sqrt(nu - mu * mu)
        torch.testing.assert_close(normalizer(x)[:, f], want)


def test_the_normaliser_defaults_are_those_of_the_method():
    normalizer = RunningNormalizer(1)
    assert (normalizer.rate, normalizer.min_std, normalizer.clip) == (1e-4, 1e-2, 10.0)


def test_after_one_batch_the_bias_is_corrected_in_full():
    normalizer = RunningNormalizer(1)
    normalizer.update(torch.tensor([[1.0], [3.0]]))
    mean, std = normalizer.statistics()
    assert (mean.item(), std.item()) == (pytest.approx(2.0), pytest.approx(1.0))


def test_the_normaliser_clips_at_ten_and_never_divides_by_less_than_one_hundredth():
    normalizer = RunningNormalizer(1)
    normalizer.update(torch.full((4, 1), 3.0))
    got = normalizer(torch.tensor([[3.02], [2.0], [99.0]])).flatten().tolist()
    assert got == [pytest.approx(2.0, abs=1e-3), -10.0, 10.0]


def test_a_normaliser_that_has_seen_nothing_only_clips():
    x = torch.tensor([[0.5, -30.0]])
    assert RunningNormalizer(2)(x).tolist() == [[0.5, -10.0]]


def test_looking_does_not_move_the_normaliser():
    normalizer = RunningNormalizer(2)
    normalizer.update(torch.randn(5, 2))
    before = snapshot(normalizer)
    for mode in (True, False):
        normalizer.train(mode)(torch.randn(4, 2) + 9)
    assert all(torch.equal(v, normalizer.state_dict()[k]) for k, v in before.items())


@pytest.mark.parametrize("normalize", [True, False])
def test_the_encoder_sees_normalised_reals_one_hots_masks_action_first_and_time(normalize):
    spec = tiny_spec(mask=True)
    torch.manual_seed(0)
    encoder = MLPEncoder(spec, EncoderSettings(hidden=(6, 4), normalize=normalize)).double()
    rows = random_batch(spec, [5], starts=[3])
    encoder.update_statistics(rows)
    seen = []
    encoder.net.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    output = encoder(rows)
    reals = torch.stack([rows.obs["place"][:, 0], rows.obs["place"][:, 1], rows.prev_reward], 1)
    if normalize:
        deviation = reals.var(0, unbiased=False).sqrt().clamp(min=1e-2)
        reals = ((reals - reals.mean(0)) / deviation).clamp(-10, 10)
    columns = [reals[:, i] for i in range(3)]
    columns += [(rows.obs["room"] == i).double() for i in range(4)]
    columns += [rows.obs["action_mask"][:, i].double() for i in range(3)]
    columns += [(rows.prev_action == i).double() for i in range(3)]
    columns += [rows.first.double(), rows.time.double() / 24]
    got = sorted(seen[0].T.tolist())
    want = sorted(column.tolist() for column in columns)
    np.testing.assert_allclose(np.array(got), np.array(want), atol=1e-9)
    torch.testing.assert_close(output.mean(-1), torch.zeros(5).double(), atol=1e-6, rtol=0)


def test_forecasts_are_judged_number_by_number_and_category_by_category():
    spec = tiny_spec(mask=True)
    torch.manual_seed(0)
    encoder = MLPEncoder(spec, EncoderSettings(hidden=(6, 4))).double()
    rows = random_batch(spec, [5], starts=[3])
    encoder.update_statistics(rows)
    model = WorldModel(encoder, 4, spec.action, 8).double()
    forecast = model(torch.randn(len(rows), 4).double(), rows.prev_action)
    change = torch.randn(len(rows), 2).double()
    normalised = encoder.reals(rows.obs, rows.prev_reward)[:, -1:]
    got = model.error(forecast, change, normalised, rows.obs).detach()
    reward = rows.prev_reward
    deviation = reward.var(unbiased=False).sqrt().clamp(min=1e-2)
    normal = ((reward - reward.mean()) / deviation).clamp(-10, 10)
    forecast, reals = forecast.detach(), torch.cat((change, normal[:, None]), 1)
    for row in range(len(rows.time)):
        # Keys in order: the mask's three flags, then the room, one of four.
        numbers, flags, room = forecast[row].split([3, 3, 4])
        want = sum(float(numbers[i] - reals[row, i]) ** 2 for i in range(3))
        for i in range(3):
            chance = 1 / (1 + math.exp(-flags[i]))
            want -= math.log(chance if rows.obs["action_mask"][row, i] else 1 - chance)
        odds = room.exp() / room.exp().sum()
        want -= math.log(odds[int(rows.obs["room"][row])])
        assert float(got[row]) == pytest.approx(want / 7)


def test_a_normaliser_never_shows_statistics_that_have_moved_on():
    kept, torch_rng = RunningNormalizer(2).double(), torch.Generator().manual_seed(0)
    for _ in range(3):
        rows = torch.randn(9, 2, generator=torch_rng).double() * 3 + 1
        kept.update(rows)
        fresh = RunningNormalizer(2).double()
        fresh.load_state_dict(kept.state_dict())
        assert torch.equal(kept(rows), fresh(rows))


@pytest.mark.parametrize("kind", ["discrete", "continuous", "multi_discrete", "multi_binary"])
def test_previous_actions_are_features_except_where_there_was_none(kind):
    spec = tiny_spec(kind)
    rows = random_batch(spec, [5])
    got = previous_action(rows, spec.action)
    assert got.shape == (5, spec.action.size) and got.dtype == torch.float64
    assert not got[0].any()
    for t in range(1, 5):
        action = rows.prev_action[t].tolist()
        hot = {
            "discrete": lambda a: np.eye(3)[a],
            "multi_discrete": lambda a: [*np.eye(3)[a[0]], *np.eye(2)[a[1]]],
        }.get(kind, lambda a: a)
        assert got[t].tolist() == list(hot(action))


def test_without_a_horizon_time_is_no_input():
    spec = tiny_spec(horizon=None)
    encoder = MLPEncoder(spec, EncoderSettings(hidden=(6, 4)))
    rows = random_batch(spec, [5], starts=[3], double=False)
    later = copy.copy(rows)
    object.__setattr__(later, "time", rows.time + 100)
    assert torch.equal(encoder(rows), encoder(later))


def test_time_stands_still_beyond_the_horizon_that_was_trained():
    encoder = MLPEncoder(tiny_spec(horizon=10), EncoderSettings(hidden=(6, 4)))

    def at(time: int) -> Tensor:
        rows = random_batch(tiny_spec(horizon=10), [1], double=False)
        object.__setattr__(rows, "time", torch.tensor([time]))
        return encoder(rows)

    assert torch.equal(at(10), at(80)) and not torch.equal(at(9), at(10))


def test_acting_never_moves_a_statistic():
    from amago.agent.policy import AgentPolicy
    from amago.types import Timestep

    agent = tiny_agent(tiny_spec(), tiny_config(), double=False)
    before = snapshot(agent)
    policy = AgentPolicy(agent, seed=0)
    state = policy.initial_state(2)
    no = np.zeros(2, bool)
    for t in range(3):
        rows = Timestep(
            {"place": np.full((2, 2), 50.0, np.float32), "room": np.zeros(2, np.uint8)},
            np.zeros(2, np.int64), np.ones(2, np.float32), np.full(2, t), no, no, no,
            np.zeros(2, np.int64),
        )  # fmt: skip
        _, state = policy.act(rows, state)
    assert all(torch.equal(v, agent.state_dict()[k]) for k, v in before.items())


# Critics


def test_chosen_members_of_an_ensemble_are_those_of_the_whole():
    torch.manual_seed(0)
    settings = HeadSettings(hidden=(5, 4), num_critics=4)
    state, members = torch.randn(6, 3), torch.tensor([3, 1])
    discrete = _DiscreteCritics(3, ActionSpec("discrete", 2), 2, settings)
    popart = PopArt(2)
    torch.testing.assert_close(
        discrete(state, popart, members).table, discrete(state, popart).table[[3, 1]]
    )
    continuous = _ContinuousCritics(3, ActionSpec("continuous", 2), (0.5, 0.9), settings)
    action = torch.randn(6, 2)
    torch.testing.assert_close(
        continuous(state, popart, members).at(action).normalised,
        continuous(state, popart).at(action).normalised[[3, 1]],
    )


def test_continuous_critics_see_state_action_and_symlog_of_the_effective_horizon():
    torch.manual_seed(0)
    settings = HeadSettings(hidden=(5,), num_critics=2)
    critics = _ContinuousCritics(3, ActionSpec("continuous", 2), (0.5, 0.999), settings)
    state, action = torch.randn(4, 3), torch.randn(4, 2)
    got = critics(state, PopArt(2)).at(action).normalised
    (w1, b1), (w2, b2) = ((layer.weight, layer.bias) for layer in critics.layers)
    assert w2.shape == (2, 5, 2) and b2.shape == (2, 1, 2)
    for c in range(2):
        for m in range(4):
            for g, discount in enumerate((0.5, 0.999)):
                feature = torch.tensor([math.log1p(1 / (1 - discount))])
                x = torch.cat((state[m], action[m], feature)) @ w1[c] + b1[c, 0]
                x = torch.where(x > 0, x, 0.01 * x) @ w2[c] + b2[c, 0]
                torch.testing.assert_close(got[c, m, g], x[g])


def test_symlog_is_odd_and_logarithmic():
    x = torch.tensor([-math.e + 1, 0.0, math.e**2 - 1])
    torch.testing.assert_close(symlog(x), torch.tensor([-1.0, 0.0, 2.0]))


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_the_heads_have_the_activation_that_is_asked_for(kind, activation):
    """With ReLU nothing but its bias is left of a layer below 0; leaky ReLU lets states through."""
    torch.manual_seed(0)
    settings = HeadSettings(hidden=(5, 4), activation=activation)
    spec = ActionSpec(kind, 2)
    actor, critics = Actor(3, spec, 2, settings), build_critics(3, spec, (0.5, 0.9), settings)
    with torch.no_grad():
        actor.trunk[0].bias.fill_(-100.0)
        critics.layers[0].bias.fill_(-100.0)
    states, action = torch.randn(2, 3), torch.zeros(2, dtype=torch.long)
    action = action if kind == "discrete" else torch.zeros(2, 2)
    values = critics(states, PopArt(2)).at(action).normalised
    dead = activation == "relu"
    one, other = actor.trunk(states)
    assert torch.equal(one, other) == dead
    assert torch.equal(values[:, 0], values[:, 1]) == dead


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_hidden_layers_of_critics_are_normalised_where_asked(kind):
    """Against one critic, state by state, in plain numbers."""
    torch.manual_seed(0)
    settings = HeadSettings(hidden=(5, 4), num_critics=2, layer_norm=True)
    spec = ActionSpec(kind, 2)
    critics = build_critics(3, spec, (0.5,), settings)
    states = torch.randn(6, 3)
    action = torch.randint(2, (6,)) if kind == "discrete" else torch.randn(6, 2)
    got = critics(states, PopArt(1)).at(action).normalised
    horizon = torch.tensor([math.log1p(2.0)])
    for c in range(2):
        for m in range(6):
            x = states[m] if kind == "discrete" else torch.cat((states[m], action[m], horizon))
            for layer in critics.layers[:-1]:
                x = x @ layer.weight[c] + layer.bias[c, 0]
                x = (x - x.mean()) / (x.var(correction=0) + 1e-5).sqrt()
                x = torch.where(x > 0, x, 0.01 * x)
            x = x @ critics.layers[-1].weight[c] + critics.layers[-1].bias[c, 0]
            want = x[action[m]] if kind == "discrete" else x[0]
            torch.testing.assert_close(got[c, m, 0], want)
