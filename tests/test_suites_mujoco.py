"""Half-Cheetah Velocity and Meta-World ML-1: worlds, rewards, trials and success."""

from __future__ import annotations

import ctypes.util
import json
import os
import pickle
import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from test_run_helpers import command, tiny

import amago
from amago.envs.domains.half_cheetah_velocity.env import HalfCheetahVelocity
from amago.envs.domains.metaworld.env import MetaWorldML1, _full_name
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings

pytestmark = pytest.mark.usefixtures("no_curves")

CHEETAH, ML1 = "amago/HalfCheetahVelocity-v0", "amago/MetaWorldML1-v0"


def lanes(name: str, **settings: Any) -> Any:
    return make_vector(EnvSettings(id=name, **settings), seed=0, num_lanes=2)


@pytest.mark.parametrize("make", [HalfCheetahVelocity, MetaWorldML1])
def test_films_need_no_screen(make):
    """In a process of its own, because MuJoCo decides at its import how to draw."""
    if ctypes.util.find_library("EGL") is None:
        pytest.skip("no libEGL on this machine")
    program = (
        f"from {make.__module__} import {make.__name__} as make\n"
        "env = make(render_mode='rgb_array')\n"
        "env.reset(seed=0)\n"
        "frame = env.render()\n"
        "assert frame.ndim == 3 and frame.dtype == 'uint8' and frame.std() > 1, frame\n"
    )
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL")
    variables = {key: value for key, value in os.environ.items() if key not in hidden}
    done = subprocess.run(
        [sys.executable, "-c", program], env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_ml1_is_evaluated_with_its_best_checkpoint_on_held_out_goals(tmp_path, capsys):
    world = {"env.kwargs": {"task": "reach", "split": "train", "horizon": 4}}
    one_lane = {"env.num_lanes": 1, "env.eval_lanes": 1}  # a lane takes longer to make than to play
    config = tiny("metaworld", {**world, **one_lane})
    amago.train(config, seed=0, run_dir=tmp_path / "run", preset="metaworld")
    asked = ["eval", tmp_path / "run", "--which", "best", "--episodes", 3, "--json"]
    found = []
    for split in ("train", "test"):
        code, out, _ = command(capsys, *asked, "--set", f"env.kwargs.split={split}")
        assert code == 0
        found.append(json.loads(out))
    assert found[0] == json.loads(command(capsys, *asked)[1]) != found[1]
    assert len(found[1]["success_per_trial"]) == 3
    code, _, error = command(capsys, *asked, "--set", "optim.learning_rate=1")
    assert code == 2 and "takes env.NAME=VALUE, got optim.learning_rate=1" in error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [HalfCheetahVelocity, MetaWorldML1])
def test_the_adapters_pass_gymnasiums_own_check(make):
    check_env(make(), skip_render_check=True)


def test_target_speeds_are_uniform_in_0_to_3_and_belong_to_the_seed():
    env = HalfCheetahVelocity()
    targets = []
    for seed in range(200):
        env.reset(seed=seed)
        targets.append(env.target)
    assert 0 <= min(targets) < 0.2 and 2.8 < max(targets) <= 3
    assert np.mean(targets) == pytest.approx(1.5, abs=0.2)
    env.reset(seed=3)
    assert env.target == targets[3]


def test_the_reward_is_the_distance_to_the_target_speed_and_the_effort():
    env, bare = HalfCheetahVelocity(), gym.make("HalfCheetah-v5").unwrapped
    obs, _ = env.reset(seed=1)
    bare_obs, _ = bare.reset(seed=1)
    assert np.array_equal(obs, bare_obs)
    generator = np.random.default_rng(0)
    for _ in range(20):
        action = generator.uniform(-1, 1, 6).astype(np.float32)
        before = bare.data.qpos[0]
        obs, reward, terminated, truncated, _ = env.step(action)
        bare_obs = bare.step(action)[0]
        speed = (bare.data.qpos[0] - before) / bare.dt
        assert np.array_equal(obs, bare_obs) and not (terminated or truncated)
        assert reward == pytest.approx(-abs(speed - env.target) - 0.05 * (action**2).sum())


def test_the_cheetah_runs_three_trials_of_200_steps_at_one_speed():
    vector = lanes(CHEETAH, trials=3)
    assert vector.spec.horizon == 600
    vector.reset()
    targets = [env.unwrapped.target for env in vector._envs]
    firsts, starts = [], []
    for time in range(1, 600):
        rows = vector.step(np.zeros((2, 6), np.float32)).rows
        if rows.first.any():
            firsts.append(time)
            starts.append(rows.obs["observation"][0])
            assert rows.first.all() and not rows.terminal.any()
            assert [env.unwrapped.target for env in vector._envs] == targets
    assert firsts == [200, 400] and not np.array_equal(*starts)
    final = vector.step(np.zeros((2, 6), np.float32)).final
    assert final is not None and final.terminal.all() and final.time.tolist() == [600, 600]
    assert [env.unwrapped.target for env in vector._envs] != targets


def test_a_reset_without_seed_draws_another_speed_unless_asked_to_keep_it():
    env = HalfCheetahVelocity()
    env.reset(seed=0)
    target = env.target
    env.reset(options={"same_world": True})
    assert env.target == target
    env.reset()
    assert env.target != target


def goal_of(env: MetaWorldML1) -> list[float]:
    return pickle.loads(env.goals[env.goal].data)["rand_vec"].tolist()


def test_ml1_hides_the_goal_and_splits_train_from_test():
    train, test = MetaWorldML1(split="train"), MetaWorldML1(split="test")
    splits = []
    for env in (train, test):
        splits.append({tuple(pickle.loads(goal.data)["rand_vec"]) for goal in env.goals})
        obs, _ = env.reset(seed=0)
        assert obs.shape == (39,) and not obs[36:].any()
        assert not env.step(np.ones(4, np.float32))[0][36:].any()
    assert [len(split) for split in splits] == [50, 50] and not splits[0] & splits[1]
    picked = set()
    for seed in range(40):
        train.reset(seed=seed)
        picked.add(train.goal)
    assert len(picked) > 20


def test_ml1_keeps_its_goal_over_the_trials_and_repeats_a_seed():
    env = MetaWorldML1(horizon=5)
    obs, _ = env.reset(seed=4)
    goal = goal_of(env)
    actions = np.random.default_rng(0).uniform(-1, 1, (5, 4)).astype(np.float32)
    rewards = [env.step(action)[1] for action in actions]
    env.reset(options={"same_world": True})
    assert goal_of(env) == goal
    env.reset(seed=9)
    assert goal_of(env) != goal
    again, _ = env.reset(seed=4)
    assert np.array_equal(again, obs) and goal_of(env) == goal
    assert [env.step(action)[1] for action in actions] == rewards


def test_ml1_success_lasts_until_the_trial_is_over_and_is_told_per_trial():
    from metaworld.policies import SawyerReachV3Policy

    from amago.rollout.scores import summarise
    from amago.rollout.stats import RolloutTracker
    from amago.types import Step

    expert = SawyerReachV3Policy()
    vector = make_vector(EnvSettings(id=ML1, kwargs={"horizon": 70}, trials=2), seed=1, num_lanes=1)
    assert vector.spec.horizon == 140
    env = vector._envs[0].unwrapped
    tracker = RolloutTracker(vector)
    tracker.add(Step(vector.reset()))
    records, reported = [], []
    for time in range(140):
        # The expert sees the goal that the agent does not; it acts in the second trial alone.
        seen = (
            np.concatenate([env.env._last_stable_obs[:36], env.env._target_pos]) if time else None
        )
        action = expert.get_action(seen) if time > 70 else np.zeros(4)
        step = vector.step(np.clip(action, -1, 1)[None].astype(np.float32))
        rows = step.final if step.final is not None else step.rows
        reported.append(bool(rows.success[0]))
        records += tracker.add(step)
    assert not any(reported[:70]) and reported[-1]
    solved = reported.index(True)
    assert 70 < solved < 139 and all(reported[solved:])
    assert summarise(records)["success_per_trial"] == [0.0, 1.0]


def test_ml1_takes_any_task_by_name_and_suggests_close_ones():
    assert _full_name("pick-place") == _full_name("pick-place-v3") == "pick-place-v3"
    with pytest.raises(ValueError, match=r"'pick-plaice'; did you mean pick-place"):
        MetaWorldML1("pick-plaice")
    with pytest.raises(ValueError, match="'train' or 'test'"):
        MetaWorldML1(split="validation")
    with pytest.raises(ValueError, match="500"):
        MetaWorldML1(horizon=501)


@pytest.mark.slow
def test_every_task_of_ml1_can_be_played():
    import metaworld

    for name in metaworld.ML1.ENV_NAMES:
        env = MetaWorldML1(name, horizon=2)
        obs, _ = env.reset(seed=0)
        assert env.observation_space.contains(obs)
        obs, reward, _, _, info = env.step(env.action_space.sample())
        assert env.observation_space.contains(obs) and np.isfinite(reward)
        assert info["success"] in (False, True)
        env.close()
