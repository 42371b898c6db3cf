"""The noise of exploration (paper, Figure 13)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from amago.rollout.exploration import Exploration
from amago.rollout.random_policy import RandomPolicy, _random_allowed
from amago.rollout.settings import ExplorationSettings
from amago.types import ACTION_MASK, ActionSpec, EnvSpec, ObsSpec, Timestep

H = 20


def rows(time, mask=None):
    time = np.asarray(time)
    n = len(time)
    no = np.zeros(n, bool)
    obs = {"x": np.zeros((n, 1), np.float32)}
    if mask is not None:
        obs[ACTION_MASK] = np.asarray(mask)
    zeros = np.zeros(n, np.float32)
    return Timestep(obs, zeros[:, None], zeros, time, time == 0, no, no, np.zeros(n, np.int64))


def explorer(
    kind="annealed", num_lanes=4, action="discrete", size=5, horizon=H, seed=0, horizons=None,
    **more,
):  # fmt: skip
    spec = EnvSpec("e", {"x": ObsSpec((1,), "float32")}, ActionSpec(action, size), horizon)
    settings = ExplorationSettings(kind=kind, **more)
    return Exploration(
        settings, spec, num_lanes=num_lanes, horizons=horizons, anneal_steps=1000,
        rollout_steps=50, seed=seed,
    )  # fmt: skip


def shaken(noise, timestep, action):
    """The actions of all lanes, with noise."""
    return noise(timestep, action, np.arange(len(timestep)))


FULL = {"start": (1.0, 1.0), "end": (1.0, 1.0)}


@pytest.mark.parametrize(
    ("steps", "start", "end"),
    [(0, 1.0, 0.8), (500, 0.525, 0.405), (1000, 0.05, 0.01), (9999, 0.05, 0.01)],
)
def test_epsilon_anneals_over_training_and_within_a_rollout(steps, start, end):
    noise = explorer()
    noise.steps = 4 * steps
    for t in (0, 7, H, 3 * H):
        want = start - (start - end) * min(t / H, 1.0)
        assert noise.epsilon(np.array([t]), 0)[0] == pytest.approx(want)


def test_without_a_horizon_the_steps_of_an_epoch_take_its_place():
    noise = explorer(horizon=None)
    assert noise.epsilon(np.array([25]), 0)[0] == pytest.approx(0.9)
    assert noise.epsilon(np.array([50]), 0)[0] == pytest.approx(0.8)


def test_every_call_counts_the_actions_that_are_executed():
    noise = explorer()
    for t in range(7):
        shaken(noise, rows([t] * 4), np.zeros(4, int))
    assert noise.steps == 28
    noise(rows([7] * 2), np.zeros(2, int), np.array([1, 3]))
    assert noise.steps == 30
    waiting = replace(rows([8] * 3), last=np.array([False, True, False]))
    noise(waiting, np.zeros(3, int), np.arange(3))
    assert noise.steps == 32


def test_some_lanes_explore_as_they_would_among_all():
    noise = explorer(num_lanes=3, horizons=(H, 2 * H, 5 * H), **FULL)
    shaken(noise, rows([0, 0, 0]), np.zeros(3, int))
    noise.multiplier[:] = (1.0, 0.0, 1.0)
    drawn = np.array([noise(rows([3, 3]), np.zeros(2, int), np.array([1, 2])) for _ in range(99)])
    assert not drawn[:, 0].any() and drawn[:, 1].any()
    noise(rows([0]), np.zeros(1, int), np.array([1]))
    assert (noise.multiplier[[0, 2]] == 1.0).all() and noise.multiplier[1] > 0


def test_the_multiplier_is_drawn_at_the_outer_reset_of_its_lane_alone():
    noise = explorer(num_lanes=3)
    shaken(noise, rows([0, 0, 0]), np.zeros(3, int))
    a = noise.multiplier.copy()
    assert ((a >= 0) & (a < 1)).all() and len(set(a.tolist())) == 3
    shaken(noise, rows([1, 1, 1]), np.zeros(3, int))
    assert noise.multiplier.tolist() == a.tolist()
    shaken(noise, rows([2, 0, 2]), np.zeros(3, int))
    b = noise.multiplier
    assert (b[0], b[2]) == (a[0], a[2]) and b[1] != a[1]


def test_multipliers_are_uniform_between_zero_and_one():
    noise = explorer(num_lanes=20_000)
    shaken(noise, rows(np.zeros(20_000, int)), np.zeros(20_000, int))
    counts, _ = np.histogram(noise.multiplier, bins=10, range=(0, 1))
    assert counts.sum() == 20_000
    assert float(((counts - 2000) ** 2 / 2000).sum()) < 33.7  # 9 degrees, 1 in 10,000


def test_a_lane_explores_with_its_multiplier_times_epsilon():
    noise = explorer(num_lanes=6, start=(0.8, 0.8), end=(0.8, 0.8))
    shaken(noise, rows([0] * 6), np.zeros(6, int))
    n = 6000
    changed = sum(shaken(noise, rows([1] * 6), np.zeros(6, int)) != 0 for _ in range(n)) / n
    want = noise.multiplier * 0.8 * 4 / 5  # one of five random actions is the policy's own
    assert np.abs(changed - want).max() < 4.5 * np.sqrt(0.25 / n)


def test_random_actions_are_uniform_over_all_actions():
    noise = explorer(num_lanes=1000, **FULL)
    shaken(noise, rows([0] * 1000), np.zeros(1000, int))
    noise.multiplier[:] = 1.0
    drawn = np.concatenate(
        [shaken(noise, rows([1] * 1000), np.zeros(1000, int)) for _ in range(30)]
    )
    counts = np.bincount(drawn, minlength=5)
    assert float(((counts - 6000) ** 2 / 6000).sum()) < 23.5  # 4 degrees, 1 in 10,000


def test_no_noise_leaves_the_policy_alone():
    noise = explorer(start=(0.0, 0.0), end=(0.0, 0.0))
    action = np.array([3, 1, 4, 0])
    for t in range(30):
        assert shaken(noise, rows([t] * 4), action).tolist() == action.tolist()


def test_ends_keeps_annealed_noise_at_the_first_and_the_last_three_steps_alone():
    noise, annealed = explorer("ends"), explorer()
    for steps in (0, 300):
        noise.steps = annealed.steps = steps
        times = np.arange(H)
        want = np.full(H, 0.5 / H)
        for t in (0, H - 3, H - 2, H - 1):
            want[t] = annealed.epsilon(np.array([t]), 0)[0]
        np.testing.assert_allclose(noise.epsilon(times, 0), want)


def test_every_lane_explores_within_its_own_horizon():
    ends, annealed = explorer("ends", horizons=(H, 2 * H, 5 * H, None)), explorer()
    epsilon = ends.epsilon(np.full(4, H - 1), np.arange(4))
    assert epsilon[0] == pytest.approx(annealed.epsilon(np.array([H - 1]), 0)[0])
    assert epsilon[1:3].tolist() == pytest.approx([0.5 / (2 * H), 0.5 / (5 * H)])
    assert ends.epsilon(np.full(4, 49), np.arange(4))[3] > 0.8  # the last step of an epoch
    late = explorer(horizons=(H, 2 * H, 5 * H, None)).epsilon(np.full(4, H), np.arange(4))
    assert late.tolist() == pytest.approx([0.8, 0.9, 0.96, 1.0 - 0.2 * H / 50])


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_continuous_noise_is_gaussian_with_deviation_epsilon_and_clipped(epsilon):
    noise = explorer(
        num_lanes=4000, action="continuous", size=2, start=(epsilon,) * 2, end=(epsilon,) * 2
    )
    zero = np.zeros((4000, 2), np.float32)
    shaken(noise, rows([0] * 4000), zero)
    got = shaken(noise, rows([1] * 4000), zero)
    assert got.dtype == np.float32 and got.shape == zero.shape
    assert np.abs(got).max() <= 1.0
    inside = noise.multiplier * epsilon < 0.25  # where clipping at 4 deviations is no matter
    scaled = got[inside] / (noise.multiplier[inside] * epsilon)[:, None]
    assert scaled.std() == pytest.approx(1.0, abs=0.06)
    assert abs(np.corrcoef(scaled.T)[0, 1]) < 0.1
    at_edge = shaken(noise, rows([1] * 4000), np.ones((4000, 2), np.float32))
    assert at_edge.max() == 1.0 and at_edge.min() >= -1.0 and (at_edge < 1.0).any()


MASK = np.array([[1, 0, 0, 1, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]])


def test_random_actions_are_allowed_ones_and_an_empty_mask_allows_all():
    noise = explorer(num_lanes=3, **FULL)
    policy = np.array([3, 2, 4])
    shaken(noise, rows([0] * 3, MASK), policy)
    noise.multiplier[:] = 1.0
    drawn = np.array([shaken(noise, rows([1] * 3, MASK), policy) for _ in range(5000)])
    assert set(drawn[:, 0]) == {0, 3}
    assert set(drawn[:, 1]) == {2}
    assert set(drawn[:, 2]) == set(range(5))
    assert abs((drawn[:, 0] == 3).mean() - 0.5) < 0.035
    counts = np.bincount(drawn[:, 2], minlength=5)
    assert float(((counts - 1000) ** 2 / 1000).sum()) < 23.5


def test_noise_is_a_function_of_seed_and_epoch():
    def play(noise, epoch):
        noise.begin(epoch)
        return [shaken(noise, rows([t] * 4), np.zeros(4, int)).tolist() for t in range(30)]

    a, b = explorer(**FULL), explorer(**FULL)
    b.begin(5)
    shaken(b, rows([0] * 4), np.zeros(4, int))  # another past
    b.steps = a.steps
    assert play(a, 2) == play(b, 2)
    assert play(a, 2) != play(a, 3)
    assert play(explorer(seed=1, **FULL), 2) != play(explorer(**FULL), 2)


def test_evaluation_without_a_perturbation_gets_the_policys_own_actions():
    from functools import partial

    from counting_env import CountingEnv

    from amago.envs.vector import InProcessVector
    from amago.rollout.driver import drive

    env = InProcessVector(partial(CountingEnv, 0), 2, 0, horizon=7)

    class Two:
        def initial_state(self, num_lanes):
            return 0

        def act(self, timestep, state):
            assert state == seen["calls"]
            seen["calls"] += 1
            return np.full(len(timestep), 2), state + 1

    seen = {"calls": 0}
    for count, step in enumerate(drive(env, Two())):
        moved = step.rows.time > 0
        assert (step.rows.prev_action[moved] == 2).all()
        if count == 10:
            break
    assert seen["calls"] == 10


def test_uniform_play_respects_masks_and_ranges():
    rng = np.random.default_rng(0)
    drawn = np.array([_random_allowed(rng, MASK) for _ in range(500)])
    assert set(drawn[:, 0]) == {0, 3} and set(drawn[:, 1]) == {2}
    spec = EnvSpec("e", {"x": ObsSpec((1,), "float32")}, ActionSpec("continuous", 2), None)
    action, _ = RandomPolicy(spec, 0).act(rows([0] * 500), None)
    assert action.shape == (500, 2) and np.abs(action).max() <= 1.0 and action.std() > 0.5
