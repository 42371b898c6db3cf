"""The doctor: every fault is found and has its remedy, and sound environments have none."""

from __future__ import annotations

import re
import time
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from test_run_helpers import command

import amago
from amago.check import environment as check
from amago.check.environment import examine
from amago.check.forecast import _suggest
from amago.config import override
from amago.envs.in_process import InProcessVector


class Patient(gym.Env[Any, Any]):
    """Sound, but for one fault."""

    def __init__(self, fault: str = "") -> None:
        self.fault, self.time = fault, 0
        self.observation_space: gym.Space[Any] = spaces.Dict(
            {"x": spaces.Box(-1.0, 1.0, (2,), np.float32), "room": spaces.Discrete(3)}
        )
        self.action_space: gym.Space[Any] = spaces.Discrete(2)
        if fault == "obs space":
            self.observation_space = spaces.Graph(spaces.Box(0, 1), None)
        if fault == "action space":
            self.action_space = spaces.Tuple([spaces.Discrete(2), spaces.Discrete(5)])
        if fault == "mask":
            self.observation_space = spaces.Dict({"action_mask": spaces.MultiBinary(3)})
        if fault == "nested mask":
            inner = spaces.Dict({"action_mask": spaces.MultiBinary(2)})
            self.observation_space = spaces.Dict({"x": inner})
        if fault == "float64":
            self.observation_space["x"] = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        if fault == "black":
            self.observation_space["x"] = spaces.Box(0, 255, (2,), np.uint8)
        if fault == "horizon":
            self.horizon = 5
        self.world = np.random.default_rng().uniform(-1, 1, 2) if fault == "world" else None
        self.info: dict[str, Any] = {}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed if self.fault != "seed" else None)
        self.time = 0
        obs = self._observe()
        return obs if self.fault == "old reset" else (obs, {})

    def step(self, action: Any) -> Any:
        self.time += 1
        if self.fault == "slow":
            time.sleep(0.06)
        if self.fault == "raises" and self.time == 3:
            raise KeyError("nobody home")
        reward: Any = {"nan reward": np.nan, "no reward": 0.0, "huge": 1e9}.get(self.fault, 1.0)
        reward = "much" if self.fault == "text reward" else reward
        done: Any = self.time == 4 and self.fault not in ("endless", "horizon")
        cut = self.fault == "cut at random" and np.random.default_rng().random() < 0.4
        if self.fault == "flags":
            done = int(done)
        info: Any = self.info if self.fault == "info" else {"success": done}
        if self.fault == "no info":
            info = None
        obs = None if self.fault == "nothing" else self._observe()
        outcome = (obs, reward, done, cut, info)
        return outcome[:4] if self.fault == "old step" else outcome

    def _observe(self) -> Any:
        if self.fault == "mask":
            return {"action_mask": np.ones(3, np.int8)}
        x = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        obs = {"x": x, "room": int(self.np_random.integers(3))}
        if self.time > 0:
            changes = {
                "nan": {"x": x * np.nan}, "bounds": {"x": x + 5}, "shape": {"x": x[:1]},
                "dtype": {"x": x.astype(np.float64)}, "category": {"room": 7},
                "float64": {"x": np.full(2, 1e300)},
            }  # fmt: skip
            obs |= changes.get(self.fault, {})
        if self.fault == "float64" and self.time == 0:
            obs["x"] = np.zeros(2)
        if self.fault == "black":
            obs["x"] = np.abs(x).astype(np.float64)
        if self.world is not None:
            obs["x"] = self.world.astype(np.float32)
        if self.fault == "missing":
            del obs["room"]
        return obs


FAULTS = {
    "obs space": (r"expected Box, Discrete.*got Graph", "TransformObservation"),
    "action space": (r"action space, got Tuple", r"MultiDiscrete\(\[2, 5\]\).*TransformAction"),
    "mask": (r"'action_mask' of shape \[2\]", "give the mask that shape"),
    "nan": ("'x' has NaN or infinite", "division or logarithm"),
    "bounds": (r"'x' reaches \S+, outside its space -1\.\.1", "widen the bounds"),
    "shape": (r"'x' has shape \[1\], its space says \[2\]", "correct the space"),
    "dtype": ("'x' has dtype float64, its space says float32", r"astype\(np.float32\)"),
    "category": ("'room' is 7, not in Discrete", "correct the space"),
    "missing": ("'room' is missing", "every entry"),
    "nan reward": ("a reward is nan", "division or logarithm"),
    "text reward": ("the reward is str", r"return float\(reward\)"),
    "no reward": ("earned nothing", "import demonstrations"),
    "huge": (r"rewards reach 1e\+09", "reward-scale"),
    "info": ("the same info dictionary", r"dict\(self.info\)"),
    "no info": ("info is NoneType", r"return \{\}"),
    "flags": ("terminated is int, not a bool", r"return bool\(terminated\)"),
    "seed": (r"two runs of seed 0 .* differ right after reset", "self.np_random"),
    "endless": ("no episode ended within 60 steps", "--env.kwargs.max_episode_steps"),
    "horizon": ("went on for 60 steps, beyond its declared horizon of 5", "TimeLimit"),
    "nothing": ("the observation is None", "in the space"),
    "float64": ("'x' has values beyond float32", "scale them down"),
    "black": ("'x' has dtype float64, its space says uint8", r"\(255 \* it\)"),
    "cut at random": (r"two runs of seed 0 .* differ after step", "self.np_random"),
    "world": ("two environments made alike.* differ right after reset", "not in the constructor"),
    "nested mask": ("outermost Dict, got x/action_mask", "move it there"),
    "slow": (r"a step takes \d+ ms", "--env.num-workers"),
    "raises": ("raised KeyError: 'nobody home'", "see where"),
    "old step": ("step.. returned 4 values", "shimmy"),
    "old reset": ("reset.. returned dict", "shimmy"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_named_with_its_remedy(fault: str) -> None:
    # A slow one is not played again for its seed: that would take half a minute.
    few = {"num_steps": 8, "seconds": 1.0} if fault == "slow" else {"num_steps": 60}
    report = examine(lambda: Patient(fault), **few)
    what, remedy = FAULTS[fault]
    assert report.problems, "nothing was found"
    found = [p for p in report.problems if re.search(what, p.what)]
    assert found, report.problems
    assert re.search(remedy, found[0].remedy) or re.search(remedy, found[0].what), found[0]
    assert all(problem.what and problem.remedy for problem in report.problems)


def test_a_sound_environment_has_no_problem_and_its_numbers_are_right() -> None:
    report = examine(Patient, 61)
    assert report.problems == [] and report.playable and report.reports_success
    assert (report.steps, report.episodes, report.terminated, report.truncated) == (61, 15, 15, 0)
    assert report.mean_length == 4.0 and report.longest == 4
    assert report.reward_range == (1.0, 1.0) and report.spec.horizon is None
    limited = examine(lambda: gym.wrappers.TimeLimit(Patient("endless"), 5), 20)
    assert limited.problems == [] and limited.spec.horizon == 5
    assert (limited.terminated, limited.truncated) == (0, 4)


def test_one_fault_is_one_problem_however_often_it_happens() -> None:
    for fault in ("bounds", "category", "nan reward", "nothing"):
        problems = examine(lambda fault=fault: Patient(fault), 60).problems
        assert len(problems) == 1, problems


def test_flags_of_numpy_are_as_good_as_pythons() -> None:
    class Numpy(Patient):
        def step(self, action: Any) -> Any:
            obs, reward, done, cut, info = super().step(action)
            return obs, reward, np.bool_(done), np.bool_(cut), info

    report = examine(Numpy, 30)
    assert report.problems == [] and report.playable


def test_what_cannot_be_made_is_a_clear_error() -> None:
    def broken() -> Any:
        raise KeyError("no such level")

    class Bare(gym.Env[Any, Any]): ...

    with pytest.raises(ValueError, match="got KeyError: 'no such level' while it was made"):
        amago.check_env(broken)
    with pytest.raises(ValueError, match="Bare to have observation_space and action_space"):
        amago.check_env(Bare)
    with pytest.raises(ValueError, match="a function that makes one, got int"):
        amago.check_env(3)


def test_a_horizon_that_is_not_kept_ends_collection_with_an_error() -> None:
    vector = InProcessVector(lambda: Patient("horizon"), 2, 0)
    vector.reset()
    for _ in range(4):
        vector.step(np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="declared horizon of 5 steps, got one that goes on"):
        vector.step(np.zeros(2, np.int64))


def test_the_remedy_for_an_unbounded_action_helps() -> None:
    class Unbounded(Patient):
        def __init__(self) -> None:
            super().__init__()
            self.action_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)

    (problem,) = examine(Unbounded, 20).problems
    assert "TransformAction(env, lambda a: a, gymnasium.spaces.Box(low, high, shape))" in (
        problem.remedy
    )
    bounded = spaces.Box(-1.0, 1.0, (2,))
    helped = examine(lambda: gym.wrappers.TransformAction(Unbounded(), lambda a: a, bounded), 20)
    assert helped.problems == []


def test_the_remedy_for_an_endless_episode_cuts_it_off_without_ending_it(capsys) -> None:
    gym.register("Endless-v0", lambda: Patient("endless"))
    try:
        result = amago.check_env("Endless-v0", 60)
        assert "--env.kwargs.max-episode-steps 1000" in str(result)
        arguments = ("check-env", "Endless-v0", "--steps", "60", "--kwargs", "max_episode_steps=9")
        code, out, _ = command(capsys, *arguments)
    finally:
        del gym.registry["Endless-v0"]
    assert code == 0 and "0 terminated (no future), 6 truncated (bootstraps)" in out
    assert "amago train gym --env.id Endless-v0 --env.kwargs.max_episode_steps 9" in out


def test_the_suggestion_for_an_environment_of_ones_own_can_be_run(tmp_path) -> None:
    def make_env() -> Patient:
        return Patient("endless")

    (suggested,) = (
        value
        for name, value in amago.check_env(make_env, 60).forecast.lines()
        if name == "suggested"
    )
    assert "max_episode_steps" not in suggested  # of gymnasium.make, which is not asked here
    small = {"run.epochs": 1, "env.num_lanes": 2, "run.updates_per_epoch": 1,
             "run.eval_episodes": 2, "rollout.steps_per_epoch": 8}  # fmt: skip

    def train(config: amago.Config, env: Any) -> Any:
        limited = lambda: gym.wrappers.TimeLimit(env(), 8)  # noqa: E731 - the remedy
        return amago.train(override(config, small), 0, tmp_path / "run", env=limited)

    run = suggested.replace("amago.train(", "train(")
    result = eval(run, {"amago": amago, "train": train, "make_env": make_env})
    assert result.result["epochs"] == 1


def test_infinity_in_an_unbounded_box_is_found_too() -> None:
    class Unbounded(Patient):
        def __init__(self) -> None:
            super().__init__()
            self.observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)

        def _observe(self) -> Any:
            return np.array([np.inf if self.time == 2 else 0.0], np.float32)

    (problem,) = examine(Unbounded, 20).problems
    assert "NaN or infinite" in problem.what


def test_randomness_that_outlives_a_reset_is_found_at_its_step() -> None:
    class Leaky(Patient):
        total = 0

        def step(self, action: Any) -> Any:
            obs, _, done, cut, info = super().step(action)
            self.total += 1
            return obs, float(self.total if self.time == 2 else 0), done, cut, info

    (problem,) = examine(Leaky, 20).problems
    assert "differ after step 2" in problem.what and "every variable" in problem.remedy


def test_wrappers_that_reset_by_themselves_are_found() -> None:
    report = examine(lambda: gym.wrappers.Autoreset(Patient()), 20)
    assert any("resets itself" in p.what and "remove" in p.remedy for p in report.problems)


def test_masks_are_obeyed_while_checking() -> None:
    for task in ("amago/MaskedRecall-v0",):
        env = gym.make(task)
        report = examine(lambda env=env: env, 200)
        assert report.problems == []
        assert not env.unwrapped.task.disobeyed.any()


def test_the_whole_check_forecasts_costs_and_compares_acting_with_training() -> None:
    env = Patient()
    result = amago.check_env(env, 60)
    forecast = result.forecast
    assert result.problems == [] and forecast is not None
    assert 0.0 <= forecast.acting_error < 1e-4
    capacity = amago.preset("gym").replay.capacity
    assert forecast.replay_bytes == capacity * forecast.trajectory_bytes > 0
    assert forecast.update_seconds > 0 and forecast.peak_bytes > 1e7
    text = str(result)
    for part in ("x: 2 real (float32)", "room: one category of 3", "discrete 2", "no problem",
                 "acting", "suggested", "15 terminated"):  # fmt: skip
        assert part in text, part
    env.step(0)  # still open


def test_a_broken_acting_path_is_a_problem(monkeypatch) -> None:
    from amago.nets.memory.transformer import TransformerMemory

    real = TransformerMemory.step

    def wrong(self, x, time, state):
        hidden, state = real(self, x, time, state)
        return hidden + 0.01, state

    monkeypatch.setattr(TransformerMemory, "step", wrong)
    (problem,) = amago.check_env(Patient, 60).problems
    assert "acting differ from those of training by 0.01" in problem.what
    assert "scale them" in problem.remedy


def test_suggestions_fit_the_environment() -> None:
    report = examine(Patient, 60)
    report.step_seconds = 1e-5  # whatever else the machine does
    assert _suggest(report) == {"replay.context_length": 4, "agent.reward_scale": 10.0}
    report.step_seconds, report.reward_range = 0.01, (-500.0, 2.0)
    assert _suggest(report)["env.num_workers"] == 2
    assert _suggest(report)["agent.reward_scale"] == pytest.approx(0.02)
    report.longest = 5000  # no update of seconds is suggested for long episodes
    assert _suggest(report)["replay.context_length"] == 128
    endless = examine(lambda: Patient("endless"), 60)
    assert _suggest(endless)["env.kwargs.max_episode_steps"] == 1000
    assert _suggest(endless)["replay.context_length"] == 128
    assert check._SLOW_SECONDS == 0.05


def test_the_verb_says_it_all_and_fails_where_there_are_problems(capsys) -> None:
    arguments = ("check-env", "amago/BitRecall-v0", "--steps", "60", "--kwargs", "bits=3")
    code, out, _ = command(capsys, *arguments)
    assert code == 0 and "multi-binary 3" in out and "no problem" in out
    assert "amago train gym --env.id amago/BitRecall-v0 --env.kwargs.bits 3" in out
    code, _, err = command(capsys, "check-env", "CartPole-v1", "--kwargs", "render_mode")
    assert code == 2 and "--kwargs expects name=value" in err
    code, _, err = command(capsys, "check-env", "NoSuchEnv-v0")
    assert code == 2 and "no environment is called" in err
    gym.register("Patient-v0", lambda: Patient("nan"))
    try:
        code, out, _ = command(capsys, "check-env", "Patient-v0", "--steps", "20")
    finally:
        del gym.registry["Patient-v0"]
    assert code == 1 and "1 problem" in out and "→ find the division" in out


@pytest.mark.parametrize("name", ["PixelRecall", "MaskedRecall", "BitRecall"])
def test_acting_equals_training_on_pixels_masks_and_bits(name: str) -> None:
    result = amago.check_env(f"amago/{name}-v0", 100)
    assert result.problems == [] and result.forecast.acting_error < 1e-4
