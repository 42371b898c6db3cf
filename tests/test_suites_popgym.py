"""POPGym by short name: spaces, horizons, ends, seeds, and training."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from test_run_helpers import tiny

from amago import api
from amago.envs.catalogue import full_id
from amago.envs.domains.popgym import ALL_IDS, IDS, PAPER_IDS
from amago.envs.domains.popgym.env import PopGym
from amago.envs.registry import make_vector, single_env
from amago.envs.settings import EnvSettings

HARD = [name for name in ALL_IDS if name.endswith("Hard")]
HORIZONS = {
    "AutoencodeEasy": 103, "RepeatPreviousEasy": 51, "RepeatPreviousHard": 155,
    "RepeatFirstMedium": 415, "CountRecallHard": 207, "PositionOnlyCartPoleMedium": 400,
    "PositionOnlyPendulumHard": 100, "VelocityOnlyCartPoleHard": 600,
    "NoisyPositionOnlyCartPoleHard": 200, "NoisyPositionOnlyPendulumEasy": 200,
    "MultiarmedBanditMedium": 400, "HigherLowerMedium": 103, "BattleshipHard": 144,
    "ConcentrationEasy": 104, "MineSweeperMedium": 30, "LabyrinthEscapeEasy": 1023,
}  # fmt: skip


def env_of(name: str) -> Any:
    return single_env(EnvSettings(id=name)).unwrapped


def play(env: Any, seed: int, choose: Any) -> tuple[list[Any], list[float], list[bool]]:
    """Observations, rewards and terminations of one episode; `choose(env, time)` acts."""
    seen, rewards, ends = [env.reset(seed=seed)[0]], [], []
    while not (ends and ends[-1]):
        obs, reward, terminated, truncated, _ = env.step(choose(env, len(ends)))
        assert not truncated and env.observation_space.contains(obs)
        seen.append(obs)
        rewards.append(reward)
        ends.append(terminated)
    return seen, rewards, ends


def at_random(seed: int = 0) -> Any:
    generator = np.random.default_rng(seed)

    def choose(env: Any, _: int) -> Any:
        if isinstance(env.action_space, gym.spaces.Box):
            return generator.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        return int(generator.integers(env.action_space.n))

    return choose


def test_there_are_42_ids_48_with_navigation_and_39_of_the_paper():
    assert (len(IDS), len(ALL_IDS), len(PAPER_IDS)) == (42, 48, 39)
    assert (
        full_id("CountRecallEasy")
        == "popgym/CountRecallEasy"
        == full_id(full_id("CountRecallEasy"))
    )
    assert full_id("CartPole-v1") == "CartPole-v1"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALL_IDS)
def test_every_environment_passes_gymnasiums_own_check(name):
    check_env(env_of(name), skip_render_check=True)


@pytest.mark.parametrize("name", HORIZONS)
def test_the_horizon_is_known_and_its_end_is_terminal(name):
    env = env_of(name)
    lengths = [len(play(env, seed, at_random(seed))[2]) for seed in range(2)]
    assert env.horizon == HORIZONS[name] >= max(lengths)
    vector = make_vector(EnvSettings(id=name), seed=0, num_lanes=2)
    assert vector.spec.horizon == HORIZONS[name]
    assert vector.spec.name == f"popgym/{name}"
    if not any(word in name for word in ("CartPole", "MineSweeper", "Labyrinth")):
        assert lengths == [env.horizon] * 2


def test_a_cart_that_stays_up_meets_the_horizon_and_terminates_there():
    env = env_of("PositionOnlyCartPoleEasy")

    def balance(env: Any, _: int) -> int:
        x, speed, angle, turning = env.env.state
        return int(angle + 0.3 * turning + 0.05 * x + 0.1 * speed > 0)

    _, rewards, ends = play(env, 3, balance)
    assert len(ends) == 200 and sum(rewards) == pytest.approx(1.0)


def test_knowing_the_answer_earns_the_best_return():
    def suit_before_last(env: Any, _: int) -> int:
        deck = env.env.deck
        return (
            int(deck.suits_idx[deck["player"][-env.env.k]]) if deck.hand_size("player") >= 4 else 0
        )

    assert sum(play(env_of("RepeatPreviousEasy"), 0, suit_before_last)[1]) == pytest.approx(1.0)
    first = play(env_of("RepeatFirstEasy"), 0, lambda env, _: int(env.env.card))[1]
    assert sum(first) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["BattleshipEasy", "MineSweeperMedium"])
def test_actions_of_two_parts_become_one_id_the_last_counting_fastest(name):
    env, bare = env_of(name), type(env_of(name).env)()
    sizes = bare.action_space.nvec.tolist()
    assert env.action_space == gym.spaces.Discrete(sizes[0] * sizes[1])
    for action, parts in enumerate(product(*map(range, sizes))):
        env.reset(seed=7)
        bare.reset(seed=7)
        ours, theirs = env.step(action), bare.step(np.array(parts))
        assert ours[:2] == theirs[:2] and ours[2] == (theirs[2] or theirs[3])


@pytest.mark.parametrize("name", HARD)
def test_a_seed_means_one_world_and_two_seeds_two(name):
    def course(seed: int) -> list[Any]:
        env = env_of(name)
        seen = [env.reset(seed=seed)[0]]
        choose = at_random(1)
        for time in range(20):
            obs, reward, terminated, _, _ = env.step(choose(env, time))
            seen += [obs, reward]
            if terminated:
                break
        return [np.asarray(value, dtype=float).ravel().tolist() for value in seen]

    again = course(5)
    assert course(5) == again
    assert any(course(seed) != again for seed in range(6, 12))


def test_infos_are_copies():
    env = env_of("CountRecallEasy")
    _, info = env.reset(seed=0)
    before = info["counts"].copy()
    env.step(0)
    assert np.array_equal(info["counts"], before)
    bandit = env_of("MultiarmedBanditEasy")
    assert bandit.reset(seed=0)[1] is not bandit.env.info


def test_labyrinths_leave_the_global_generators_alone():
    env = env_of("LabyrinthExploreEasy")
    random.seed(1)
    np.random.seed(1)
    env.reset(seed=5)
    after = random.random(), np.random.random()
    random.seed(1)
    np.random.seed(1)
    assert after == (random.random(), np.random.random())


def test_discrete_parts_reach_the_network_as_categories():
    specs = {
        name: make_vector(EnvSettings(id=name), seed=0, num_lanes=1).spec.obs
        for name in ("AutoencodeEasy", "ConcentrationHard", "CountRecallEasy", "RepeatFirstEasy")
    }
    sizes = {
        name: {key: (item.kind, item.shape, item.size) for key, item in obs.items()}
        for name, obs in specs.items()
    }
    assert sizes["AutoencodeEasy"] == {"0": ("category", (), 2), "1": ("category", (), 4)}
    assert sizes["ConcentrationHard"] == {"observation": ("category", (52,), 14)}
    assert sizes["CountRecallEasy"] == {"observation": ("category", (2,), 2)}
    assert sizes["RepeatFirstEasy"] == {"observation": ("category", (), 4)}


def test_an_environment_that_popgym_does_not_have_is_refused():
    with pytest.raises(ValueError, match="RepeatNothingEasy"):
        PopGym("RepeatNothingEasy")
    with pytest.raises(ValueError, match=r"popgym/RepeatFirstEasy"):
        make_vector(EnvSettings(id="popgym/RepeatFirst"), seed=0, num_lanes=1)
    with pytest.raises(ValueError, match="has no argument 'k'; it accepts max_episode_steps"):
        make_vector(EnvSettings(id="RepeatFirstEasy", kwargs={"k": 2}), seed=0, num_lanes=1)


def train_two_updates(name: str, steps: int, folder: Any) -> None:
    few = {"run.eval_episodes": 1, "run.final_eval_episodes": 1, "env.num_lanes": 2}
    few |= {"env.eval_lanes": 1}
    config = tiny("popgym", {**few, "env.id": name, "env.horizon": steps})
    result = api.train(config, 0, folder, preset="popgym").result
    assert result["updates"] == 2 and np.isfinite(result["return_mean"])


@pytest.mark.parametrize("family", [name.removeprefix("popgym/")[:-4] for name in HARD])
def test_one_environment_of_each_family_trains_two_small_updates(family, tmp_path, monkeypatch):
    monkeypatch.setattr(api, "plot_run", lambda *_, **__: None)
    train_two_updates(f"{family}Easy", 8, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL_IDS)
def test_every_environment_trains_two_small_updates(name, tmp_path, monkeypatch):
    monkeypatch.setattr(api, "plot_run", lambda *_, **__: None)
    train_two_updates(name, 60, tmp_path / "run")
