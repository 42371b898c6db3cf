"""What amago sees of an environment, and what would go wrong in training, by random play."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from amago.envs.check_observation import at_path, findings
from amago.envs.in_process import Env, checked_env, horizon_of, name_of
from amago.envs.leaves import walk
from amago.envs.spaces import ActionConverter, ObsConverter, check_action_mask
from amago.types import ACTION_MASK, EnvSpec

SLOW_SECONDS = 0.05
"""A step that takes longer than this on average is a problem."""
REPLAYED_STEPS = 200
"""Steps that are played twice with one seed."""
EXTREME_REWARD = 1e6


@dataclass(frozen=True)
class Problem:
    """What is wrong and what to do about it."""

    what: str
    remedy: str


@dataclass
class EnvReport:
    """What random play showed."""

    name: str
    spec: EnvSpec | None = None
    """None when the spaces cannot be used at all."""
    steps: int = 0
    episodes: int = 0
    terminated: int = 0
    truncated: int = 0
    reward_range: tuple[float, float] = (0.0, 0.0)
    mean_length: float | None = None
    longest: int = 0
    step_seconds: float = 0.0
    reports_success: bool = False
    playable: bool = False
    """Random play came to its end without an error of the interface."""
    problems: list[Problem] = field(default_factory=list)

    def add(self, what: str, remedy: str) -> None:
        """Note a problem, once."""
        problem = Problem(what, remedy)
        if problem not in self.problems:
            self.problems.append(problem)


def examine(make_env: Callable[[], Env], num_steps: int = 1000, seed: int = 0) -> EnvReport:
    """Play at random for so many steps, then again from the same seed."""
    env = checked_env(make_env())
    report = EnvReport(name_of(env))
    try:
        _check_wrappers(env, report)
        if _read_spaces(env, report):
            try:
                _play(env, report, num_steps, seed)
                if report.playable:
                    _play_twice(env, report, seed)
            except Exception as error:
                report.playable = False
                report.add(
                    f"the environment raised {type(error).__name__}: {error}",
                    f"reset(seed={seed}) and play random actions of its action_space to see where",
                )
    finally:
        env.close()
    return report


def _check_wrappers(env: Env, report: EnvReport) -> None:
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, gym.wrappers.Autoreset):
            report.add(
                "the environment resets itself (gymnasium.wrappers.Autoreset), which hides the "
                "last observation of every episode",
                "remove that wrapper: amago resets environments itself",
            )
        layer = layer.env


def _read_spaces(env: Env, report: EnvReport) -> bool:
    try:
        obs, action = ObsConverter(env.observation_space), ActionConverter(env.action_space)
        check_action_mask(obs.specs, action.spec)
    except ValueError as error:
        what, _, remedy = str(error).rpartition("; ")
        report.add(what, remedy)
        return False
    report.spec = EnvSpec(report.name, obs.specs, action.spec, horizon_of(env))
    return True


def _play(env: Env, report: EnvReport, num_steps: int, seed: int) -> None:
    assert report.spec is not None
    rng = np.random.default_rng(seed)
    rewards: list[float] = []
    lengths: list[int] = []
    length, spent = 0, 0.0
    last_info: Any = None
    obs = _reset(env, report, seed)
    for _ in range(num_steps):
        if obs is None:
            return
        _check_obs(env, obs, report)
        begin = time.perf_counter()
        outcome = env.step(random_action(env, obs, rng))
        spent += time.perf_counter() - begin
        report.steps += 1
        length += 1
        if not isinstance(outcome, tuple) or len(outcome) != 5:
            got = f"{len(outcome)} values" if isinstance(outcome, tuple) else type(outcome).__name__
            report.add(
                f"step() returned {got} instead of (obs, reward, terminated, truncated, info)",
                "return the five values of Gymnasium ≥ 1.0; old Gym environments are converted "
                "by shimmy",
            )
            return
        obs, reward, terminated, truncated, info = outcome
        rewards.append(_check_reward(reward, report))
        for name, flag in (("terminated", terminated), ("truncated", truncated)):
            if not isinstance(flag, bool | np.bool_):
                report.add(
                    f"{name} is {type(flag).__name__}, not a bool",
                    f"return bool({name}): a NaN or a string would count as true",
                )
        if info is last_info:
            report.add(
                "step() returns the same info dictionary every time, so what was read from one "
                "step changes at the next",
                "return a new dictionary per step, for instance dict(self.info)",
            )
        last_info = info
        if isinstance(info, dict):
            report.reports_success |= bool({"success", "is_success"} & set(info))
        else:
            report.add(f"info is {type(info).__name__}, not a dict", "return {} if there is none")
            return
        if terminated or truncated:
            _check_obs(env, obs, report)
            report.terminated += bool(terminated)
            report.truncated += bool(truncated and not terminated)
            lengths.append(length)
            length = 0
            obs = _reset(env, report, None)
    report.episodes = len(lengths)
    report.longest = max([*lengths, length])
    report.mean_length = float(np.mean(lengths)) if lengths else None
    finite = [reward for reward in rewards if math.isfinite(reward)]
    report.reward_range = (min(finite, default=0.0), max(finite, default=0.0))
    report.step_seconds = spent / max(report.steps, 1)
    report.playable = True
    _judge_play(report)


def _judge_play(report: EnvReport) -> None:
    assert report.spec is not None
    if not report.episodes and report.spec.horizon is None:
        report.add(
            f"no episode ended within {report.steps} steps, and no horizon is declared",
            "limit it with --env.horizon STEPS, or wrap it in gymnasium.wrappers.TimeLimit",
        )
    if report.step_seconds > SLOW_SECONDS:
        report.add(
            f"a step takes {1000 * report.step_seconds:.0f} ms",
            "spread the lanes over processes with --env.num-workers, render only on demand, and "
            "profile the environment's step()",
        )
    low, high = report.reward_range
    if max(-low, high) > EXTREME_REWARD:
        report.add(
            f"rewards reach {low:g}..{high:g}",
            "scale them with gymnasium.wrappers.TransformReward, or lower --agent.reward-scale",
        )
    if low == high == 0.0:
        report.add(
            f"random play earned nothing in {report.steps} steps",
            "check that a reward can be reached at all; if it is only rare, look with more "
            "--steps, shorten the task, or import demonstrations (amago import)",
        )


def _reset(env: Env, report: EnvReport, seed: int | None) -> Any:
    outcome = env.reset(seed=seed)
    if not isinstance(outcome, tuple) or len(outcome) != 2:
        report.add(
            f"reset() returned {type(outcome).__name__} instead of (obs, info)",
            "return a pair; old Gym environments are converted by shimmy",
        )
        return None
    return outcome[0]


def _check_reward(reward: Any, report: EnvReport) -> float:
    try:
        value = float(reward)
    except (TypeError, ValueError):
        report.add(f"the reward is {type(reward).__name__}, not a number", "return float(reward)")
        return math.nan
    if not math.isfinite(value):
        report.add(
            f"a reward is {value}", "find the division or logarithm that makes it; clip its input"
        )
    return value


def _check_obs(env: Env, obs: Any, report: EnvReport) -> None:
    for what, remedy in findings(env, obs):
        report.add(what, remedy)


def random_action(env: Env, obs: Any, rng: np.random.Generator) -> Any:
    """A uniformly random action that the mask of the observation allows."""
    space = env.action_space
    space.seed(int(rng.integers(2**31)))
    if not isinstance(obs, dict) or ACTION_MASK not in obs:
        return space.sample()
    mask = np.asarray(obs[ACTION_MASK]).astype(np.int8).reshape(-1)
    if isinstance(space, gym.spaces.Discrete):
        return space.sample(mask if mask.any() else None)
    assert isinstance(space, gym.spaces.MultiDiscrete)
    parts = np.split(mask, np.cumsum(space.nvec.reshape(-1))[:-1])
    ids = [rng.choice(np.flatnonzero(part if part.any() else part + 1)) for part in parts]
    shaped = np.array(ids).reshape(space.nvec.shape) + space.start
    return shaped.astype(space.dtype)


def _play_twice(env: Env, report: EnvReport, seed: int) -> None:
    """One seed and one sequence of actions must give one sequence of observations."""
    first = _trace(env, seed)
    second = _trace(env, seed)
    for number, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            when = "right after reset" if number == 0 else f"after step {number}"
            report.add(
                f"two runs of seed {seed} with the same actions differ {when}",
                "draw all randomness from self.np_random, which reset(seed=...) seeds (call "
                "super().reset(seed=seed) first), and reset every variable of the last episode",
            )
            return


def _trace(env: Env, seed: int) -> list[bytes]:
    rng = np.random.default_rng(seed)
    obs, _ = env.reset(seed=seed)
    found = [_bytes(env, obs)]
    for _ in range(REPLAYED_STEPS):
        obs, reward, terminated, truncated, _ = env.step(random_action(env, obs, rng))
        found.append(_bytes(env, obs) + np.float64(reward).tobytes() + bytes([terminated]))
        if terminated or truncated:
            break
    return found


def _bytes(env: Env, obs: Any) -> bytes:
    parts = []
    for path, _ in walk(env.observation_space, ()):
        part = at_path(obs, path)
        parts.append(part.encode() if isinstance(part, str) else np.asarray(part).tobytes())
    return b"".join(parts)
