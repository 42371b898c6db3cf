"""A trained policy in other people's loops, and amago's functions for Python."""

from __future__ import annotations

import copy
import dataclasses
import multiprocessing
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from test_run_helpers import tiny

import amago
from amago import api
from amago.config import Config, override
from amago.envs.lanes import world_seed
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.envs.spaces import ObsConverter
from amago.evaluation import play as playing
from amago.evaluation.play import play
from amago.rollout.random_policy import RandomPolicy
from amago.saved.source import find_source
from amago.serving.observations import read
from amago.serving.predictor import Predictor
from amago.types import Array, Step

NAMES = ("dark-key-to-door", "wind", "gym")
SEED, LANES = 5, 3


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A trained run of a task with trials, a continuous one, and one whose rollouts vary."""
    drawn, api.plot_run = api.plot_run, lambda *_, **__: None  # type: ignore[assignment]
    folders = {name: tmp_path_factory.mktemp("runs") / "run" for name in NAMES}
    for name, folder in folders.items():
        fast = {
            "optim.learning_rate": 0.01,
            "optim.warmup_updates": 0,
            "run.updates_per_epoch": 30,
            "replay.batch_rows": 240,
        }
        amago.train(tiny(name, fast), 1, folder, preset=name)
    api.plot_run = drawn
    return folders


def _actions_of_evaluation(
    policy: Predictor, settings: EnvSettings, episodes: int
) -> dict[tuple[int, int], list[Array]]:
    """The actions of every rollout (lane, number), as evaluation takes them."""
    env = make_vector(settings, seed=SEED, num_lanes=LANES)
    taken: dict[tuple[int, int], list[Array]] = {}
    number = np.zeros(LANES, int)

    def watch(step: Step) -> None:
        for lane in range(LANES):
            final = np.flatnonzero(step.final_lanes == lane)
            rows, row = (step.final, final[0]) if len(final) else (step.rows, lane)
            assert rows is not None
            if rows.time[row] > 0:
                key = (lane, int(number[lane]))
                taken.setdefault(key, []).append(rows.prev_action[row].copy())
            number[lane] += len(final)

    play(policy.policy, env, episodes, watchers=[watch])
    env.close()
    return taken


def _make(config: Config) -> gym.Env[Any, Any]:
    return gym.make(config.env.id, disable_env_checker=True, **config.env.kwargs)


def _plain_loop(policy: Predictor, env: gym.Env[Any, Any], seed: int) -> list[Array]:
    obs, info = env.reset(seed=seed)
    state, reward, over, actions = None, 0.0, False, []
    while not over:
        action, state = policy.predict(obs, state, reward=reward, first=info.get("first"))
        assert env.action_space.contains(action)
        obs, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        actions.append(np.asarray(action))
    return actions


def _config(run: Path) -> Config:
    return find_source(run).config


@pytest.mark.parametrize("name", NAMES)
def test_predicting_in_a_plain_loop_acts_as_evaluation_does(
    runs: dict[str, Path], name: str
) -> None:
    config, policy = _config(runs[name]), amago.load(runs[name], greedy=True)
    expected = _actions_of_evaluation(policy, config.env, episodes=2 * LANES)
    env, different = _make(config), set()
    for lane in range(LANES):
        for number in range(2):
            ours = np.stack(_plain_loop(policy, env, world_seed(SEED, lane, number)))
            theirs = np.stack(expected[lane, number])
            assert ours.shape == theirs.shape
            # One lane and three are other matrix shapes: the last bits of a float may differ.
            np.testing.assert_allclose(ours, theirs, atol=1e-5 if name == "wind" else 0)
            different.add(ours.tobytes())
    assert len(different) > 1, "one sequence of actions for all worlds shows nothing"
    env.close()


@pytest.mark.parametrize("name", ["dark-key-to-door", "wind"])
def test_predicting_for_a_vector_acts_exactly_as_evaluation_does(
    runs: dict[str, Path], name: str
) -> None:
    config, policy = _config(runs[name]), amago.load(runs[name], greedy=True)
    expected = _actions_of_evaluation(policy, config.env, episodes=2 * LANES)
    env = SyncVectorEnv([lambda: _make(config)] * LANES, autoreset_mode=AutoresetMode.DISABLED)
    state = None
    for number in range(2):  # the state of the first rollout is handed on: a start clears it
        obs, info = env.reset(seed=[world_seed(SEED, lane, number) for lane in range(LANES)])
        start, reward, first = np.ones(LANES, bool), np.zeros(LANES), None
        for time in range(config.env.kwargs["horizon"]):
            action, state = policy.predict(obs, state, start, reward=reward, first=first)
            for lane in range(LANES):
                theirs = expected[lane, number][time]
                np.testing.assert_array_equal(action[lane], theirs)
            obs, reward, *_, info = env.step(action)
            start, first = np.zeros(LANES, bool), info["first"]
    env.close()


@pytest.mark.parametrize("changed", ["reward", "first", "episode_start", "obs"])
def test_what_is_told_to_predict_matters(runs: dict[str, Path], changed: str) -> None:
    policy = amago.load(runs["wind"], greedy=True)
    obs = np.array([0.1, 0.2], np.float32)

    def second_action(**other: Any) -> Array:
        _, state = policy.predict(obs)
        told = {"obs": obs, "episode_start": False, "reward": 0.0, "first": False, **other}
        action: Array = policy.predict(state=state, **told)[0]
        return action

    other = {"reward": 1.0, "first": True, "episode_start": True, "obs": obs + 1.0}[changed]
    assert (second_action() == second_action()).all()
    assert not np.allclose(second_action(), second_action(**{changed: other}), atol=1e-6)


def test_a_start_forgets_all_that_came_before(runs: dict[str, Path]) -> None:
    policy = amago.load(runs["wind"], greedy=True)
    obs = np.array([0.1, 0.2], np.float32)
    fresh, state = policy.predict(obs)
    for _ in range(4):
        _, state = policy.predict(obs + 1.0, state, reward=1.0)
    again, _ = policy.predict(obs, state, True, reward=7.0)
    np.testing.assert_array_equal(fresh, again)


def test_a_state_of_other_environments_is_refused(runs: dict[str, Path]) -> None:
    policy = amago.load(runs["wind"])
    _, state = policy.predict(np.zeros((2, 2), np.float32))
    with pytest.raises(ValueError, match=r"2 environments.*3.*state=None"):
        policy.predict(np.zeros((3, 2), np.float32), state)


def test_a_state_cannot_be_predicted_from_twice_but_a_copy_of_it_can(
    runs: dict[str, Path],
) -> None:
    policy, obs = amago.load(runs["wind"], greedy=True), np.zeros(2, np.float32)
    _, state = policy.predict(obs)
    kept = copy.deepcopy(state)
    once, _ = policy.predict(obs + 1.0, state, reward=0.0)
    with pytest.raises(ValueError, match=r"predicted from already.*deepcopy"):
        policy.predict(obs + 1.0, state, reward=0.0)
    again, _ = policy.predict(obs + 1.0, kept, reward=0.0)
    np.testing.assert_array_equal(once, again)


def test_predict_alone_needs_no_more_than_an_observation(runs: dict[str, Path]) -> None:
    policy = amago.load(runs["gym"])
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=0)
    state, over = None, False
    while not over:  # as with Stable-Baselines3
        action, state = policy.predict(obs, state, deterministic=True)
        obs, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
    assert policy.observation_space == env.observation_space
    assert repr(policy) == "Predictor(CartPole-v1, transformer, sampled actions of Discrete(2))"


def test_whoever_leaves_the_reward_out_is_told_once(
    runs: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    policy, obs = amago.load(runs["wind"]), np.zeros(2, np.float32)
    state = None
    for _ in range(3):
        _, state = policy.predict(obs, state)
    assert [record.message for record in caplog.records if "reward=" in record.message] == [
        "predict got no reward=, so the agent reads 0; it learned with the reward of the last "
        "step, so pass that for actions as good as in training"
    ]


def test_deterministic_decides_for_one_call(runs: dict[str, Path]) -> None:
    obs = np.zeros(2, np.float32)
    for loaded in (True, False):
        for deterministic in (True, False):
            policy = amago.load(runs["wind"], greedy=loaded)
            found = {
                policy.predict(obs, deterministic=deterministic)[0].tobytes() for _ in range(4)
            }
            assert len(found) == (1 if deterministic else 4)


def test_a_batch_gets_the_actions_of_its_observations_one_by_one(runs: dict[str, Path]) -> None:
    policy = amago.load(runs["wind"], greedy=True)
    batch = np.array([[0.0, 0.0], [0.5, -0.5], [1.0, 1.0]], np.float32)
    together, states = policy.predict(batch)
    later, _ = policy.predict(batch + 0.1, states, reward=[0.0, 1.0, 2.0])
    assert together.shape == later.shape == (3, 2)
    for lane, obs in enumerate(batch):
        alone, state = policy.predict(obs)
        np.testing.assert_allclose(alone, together[lane], atol=1e-5)
        after, _ = policy.predict(obs + 0.1, state, reward=float(lane))
        np.testing.assert_allclose(after, later[lane], atol=1e-5)


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ({"obs": np.zeros(3, np.float32)}, r"expected shape \[2\], or \[N, 2\].*got \[3\]"),
        ({"obs": np.zeros((4, 1, 2), np.float32)}, r"got \[4, 1, 2\]"),
        ({"obs": np.array(["a", "b"])}, "expected numbers, got <U1"),
        ({"obs": None}, "expected shape.*got NoneType"),
        ({"obs": np.array([np.nan, 0.0])}, r"expected finite numbers, got \[nan"),
        ({"obs": {"position": np.zeros(2)}}, "expected shape"),
        ({"obs": np.zeros((3, 2)), "reward": [0.0, 1.0]}, "one reward for each of 3 environ"),
        ({"obs": np.zeros((3, 2)), "episode_start": [True] * 2}, "one episode_start for each of 3"),
        ({"obs": np.zeros((3, 2)), "episode_start": [True]}, "one episode_start for each of 3"),
        ({"obs": np.zeros(2), "deterministic": "yes"}, "deterministic takes True, False or None"),
    ],
)
def test_wrong_arguments_of_predict_are_named(
    runs: dict[str, Path], told: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        amago.load(runs["wind"]).predict(**told)


SPACES = gym.spaces.Dict(
    {
        "picture": gym.spaces.Box(0, 255, (16, 16, 3), np.uint8),
        "room": gym.spaces.Discrete(4, start=1),
        "word": gym.spaces.Text(4, charset="abc"),
    }
)


def test_parts_of_a_dictionary_are_checked_one_by_one() -> None:
    converter = ObsConverter(SPACES)
    good = {"picture": np.zeros((16, 16, 3), np.uint8), "room": 2, "word": "ab"}
    arrays, single = read(converter, good)
    assert single and arrays["room"].tolist() == [1] and arrays["word"].shape == (1, 4)
    arrays, single = read(converter, [good, {**good, "room": 4}])
    assert not single and arrays["room"].tolist() == [1, 3]
    batched = {"picture": np.zeros((2, 16, 16, 3), np.uint8), "room": [1, 2], "word": ("a", "b")}
    assert read(converter, batched)[0]["room"].tolist() == [0, 1]
    wrong = {
        "expected uint8 pixels 0..255, got float32": {"picture": np.zeros((16, 16, 3), "f4")},
        "'room': expected values from 1 to 4, got 5": {"room": 5},
        "'room': expected whole numbers, got float64": {"room": 1.5},
        "equally many environments, got picture: one, room: 2": {"room": [1, 2]},
    }
    for complaint, change in wrong.items():
        with pytest.raises(ValueError, match=complaint):
            read(converter, {**good, **change})
    with pytest.raises(ValueError, match="with the part 'word'"):
        read(converter, {"picture": good["picture"], "room": 1})


@pytest.mark.parametrize("greedy", [True, False])
def test_loading_decides_between_greedy_and_sampled_actions(
    runs: dict[str, Path], greedy: bool
) -> None:
    obs = np.zeros(2, np.float32)
    actions = {
        amago.load(runs["wind"], greedy=greedy, seed=seed).predict(obs)[0].tobytes()
        for seed in range(4)
    }
    assert len(actions) == (1 if greedy else 4)


def test_evaluate_takes_settings_callables_environments_and_vectors(
    runs: dict[str, Path],
) -> None:
    policy, config = amago.load(runs["wind"], greedy=True), _config(runs["wind"])
    vector = make_vector(config.env, seed=3, num_lanes=4)
    kinds = [config.env, lambda: _make(config), vector, _make(config)]
    results = [amago.evaluate(policy, kind, 4, seed=3) for kind in kinds]
    assert [result["episodes"] for result in results] == [4] * 4
    assert results[0] == results[2]
    assert results[1]["return_mean"] == pytest.approx(results[0]["return_mean"])
    assert amago.evaluate(policy, "amago/Wind-v0", 2)["length_mean"] == 75


def test_an_evaluation_can_be_repeated_and_its_arguments_matter(runs: dict[str, Path]) -> None:
    policy, env = amago.load(runs["wind"]), _config(runs["wind"]).env

    def played(**arguments: Any) -> dict[str, Any]:
        return amago.evaluate(policy, env, 4, seed=3, **arguments)

    taken: list[Array] = []
    original = type(policy.policy).act

    def act(self: Any, timestep: Any, state: Any) -> Any:
        action, state = original(self, timestep, state)
        taken.append(action.copy())
        return action, state

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(policy.policy), "act", act)
        for arguments in ({}, {}, {"greedy": True}):
            played(**arguments)
    first, again, greedy = (np.stack(part) for part in np.array_split(np.stack(taken), 3))
    assert (first == again).all() and not (first == greedy).all()
    with pytest.raises(ValueError, match=r"no policy for discount 0\.123"):
        played(discount=0.123)
    with pytest.raises(ValueError, match="needs lanes that evaluate makes itself"):
        amago.evaluate(policy, make_vector(env, seed=0, num_lanes=1), 1, instruction="eat cow")


def test_evaluate_refuses_an_environment_of_other_spaces(runs: dict[str, Path]) -> None:
    policy = amago.load(runs["wind"])
    with pytest.raises(ValueError, match=r"trained on amago/Wind-v0.*CartPole-v1"):
        amago.evaluate(policy, "CartPole-v1", 2)


def test_evaluate_ends_the_worker_processes_that_it_started(runs: dict[str, Path]) -> None:
    policy, config = amago.load(runs["wind"]), _config(runs["wind"])
    settings = dataclasses.replace(config.env, num_workers=2)
    before = set(multiprocessing.active_children())
    amago.evaluate(policy, settings, 4)
    left = set(multiprocessing.active_children()) - before
    for process in left:
        process.terminate()
    assert not left, f"{len(left)} processes live on"


def test_training_returns_what_the_run_folder_says(tmp_path: Path) -> None:
    result = amago.train(tiny("wind"), seed=2, run_dir=tmp_path / "run").result
    assert result["seed"] == 2 and result["epochs"] == 2 and result["episodes"] == 4
    assert amago.resume(tmp_path / "run").result == result
    assert (tmp_path / "run" / "curves.png").exists()


def test_gymnasium_alone_can_make_amagos_environments_through_their_module() -> None:
    program = "import gymnasium; gymnasium.make('amago.envs.registry:amago/TMaze-v0')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-300:]


def test_presets_can_be_changed_by_dotted_names_and_mistakes_are_named() -> None:
    config = override(amago.preset("wind"), {"optim.learning-rate": 0.1, "memory": "gru"})
    assert config.optim.learning_rate == 0.1 and config.memory == "gru"
    with pytest.raises(ValueError, match=r"optim\.speed"):
        override(config, {"optim.speed": 1})
    with pytest.raises(ValueError, match="did you mean wind"):
        amago.preset("winds")


@pytest.mark.parametrize("value", ["lstm", 3])
def test_a_choice_that_does_not_exist_is_refused_from_python_too(value: Any) -> None:
    """Not silently the Transformer."""
    with pytest.raises(ValueError, match="memory"):
        override(amago.preset("wind"), {"memory": value})


class Endless(gym.Env[Array, int]):
    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict]:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict]:
        return np.zeros(1, np.float32), 0.0, False, False, {}


def test_an_evaluation_gives_up_what_never_ends_but_not_what_is_only_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(playing, "_MAX_STEPS_WITHOUT_END", 5)
    settings = EnvSettings(id="amago/TMaze-v0", kwargs={"corridor": 20})
    long = make_vector(settings, seed=0, num_lanes=2)
    records = play(RandomPolicy(long.spec, 0), long, 4)
    assert [record.length for record in records] == [21] * 4

    endless = make_vector(EnvSettings(), seed=0, num_lanes=1, make_env=Endless)
    with pytest.raises(RuntimeError, match=r"within 5 steps.*--env\.horizon"):
        play(RandomPolicy(endless.spec, 0), endless, 1)
