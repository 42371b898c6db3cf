"""What amago sees of an environment, and what would go wrong in training, by random play."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from amago.check.observation import findings
from amago.check.seed import random_action, unseeded
from amago.check.watched import made
from amago.checks import described
from amago.envs.in_process import Env, horizon_of, name_of
from amago.envs.settings import EnvSettings
from amago.envs.spaces import ActionConverter, ObsConverter, check_action_mask
from amago.envs.watchdog import Watchdog
from amago.stopping import Terminated
from amago.types import EnvSpec

_SLOW_SECONDS = 0.05
"""A step that takes longer than this on average is a problem."""
_MOST_SECONDS = 60.0
"""Random play ends after so many seconds of steps, however few they were."""
_REPEATED_STEPS = 600
"""What it takes to see whether a seed means one world."""
_EXTREME_REWARD = 1e6
_FAILED = object()
"""In place of an observation where reset() gave none."""


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
    _known: set[str] = field(default_factory=set)

    def add(self, what: str, remedy: str, kind: str | None = None) -> None:
        """Note a problem, the first of its kind only; without a kind, one of these words."""
        kind = kind or what
        if kind not in self._known:
            self._known.add(kind)
            self.problems.append(Problem(what, remedy))


def examine(
    make_env: Callable[[], Env],
    num_steps: int = 1000,
    seed: int = 0,
    seconds: float = _MOST_SECONDS,
    timeout: float = EnvSettings.timeout_seconds,
) -> EnvReport:
    """Play at random for so many steps, at most so many seconds, then again from the same seed.

    A call that does not come back within `timeout` seconds is named, then interrupted.
    """
    with contextlib.closing(Watchdog(timeout)) as watchdog:
        if math.isfinite(timeout):
            watchdog.start()

        make = partial(made, make_env, watchdog)
        return _examined(make(), make, num_steps, seed, seconds)


def _examined(
    env: Env, make_env: Callable[[], Env], num_steps: int, seed: int, seconds: float
) -> EnvReport:
    report = EnvReport(name_of(env))
    try:
        _check_wrappers(env, report)
        if _read_spaces(env, report):
            try:
                _play(env, report, num_steps, seed, seconds)
                if report.playable and report.step_seconds * _REPEATED_STEPS < seconds:
                    difference = unseeded(env, make_env, seed)
                    if difference is not None:
                        report.add(*difference)
            except Terminated:
                raise
            except (Exception, SystemExit) as error:
                explained = report.playable and bool(report.problems)
                report.playable = False
                if not explained:
                    report.add(
                        f"the environment raised {described(error)}",
                        f"reset(seed={seed}) and play random actions of its action_space to see "
                        "where",
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


def _play(env: Env, report: EnvReport, num_steps: int, seed: int, seconds: float) -> None:
    assert report.spec is not None
    rng = np.random.default_rng(seed)
    rewards: list[float] = []
    lengths: list[int] = []
    length, spent = 0, 0.0
    last_info: Any = None
    obs = _reset(env, report, seed)
    for _ in range(num_steps):
        if obs is _FAILED:
            return
        if spent > seconds:
            break
        _check_obs(env, obs, report)
        begin = time.perf_counter()
        outcome = env.step(random_action(env, obs, rng))
        spent += time.perf_counter() - begin
        report.steps += 1
        length += 1
        if not _check_outcome(outcome, last_info, report):
            return
        obs, reward, terminated, truncated, last_info = outcome
        rewards.append(_check_reward(reward, report))
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
    if rewards and all(reward == 0.0 for reward in rewards):
        report.add(
            f"random play earned nothing in {report.steps} steps",
            "check that a reward can be reached at all; if it is only rare, look with more "
            "--steps, shorten the task, or import demonstrations (amago import)",
        )


def _judge_play(report: EnvReport) -> None:
    assert report.spec is not None
    horizon = report.spec.horizon
    if not report.episodes and horizon is None:
        report.add(
            f"no episode ended within {report.steps} steps, and no horizon is declared",
            "cut it off with --env.kwargs.max_episode_steps 1000, or wrap it in "
            "gymnasium.wrappers.TimeLimit (cut off is not over: learning looks beyond)",
        )
    if horizon is not None and report.longest > horizon:
        report.add(
            f"an episode went on for {report.longest} steps, beyond its declared horizon of "
            f"{horizon}",
            "return truncated=True there, wrap it in gymnasium.wrappers.TimeLimit, or declare "
            "the true horizon",
        )
    if report.step_seconds > _SLOW_SECONDS:
        report.add(
            f"a step takes {1000 * report.step_seconds:.0f} ms",
            "spread the lanes over processes with --env.num-workers, render only on demand, and "
            "profile the environment's step()",
        )
    low, high = report.reward_range
    if max(-low, high) > _EXTREME_REWARD:
        report.add(
            f"rewards reach {low:g}..{high:g}",
            "scale them with gymnasium.wrappers.TransformReward, or lower --agent.reward-scale",
        )


def _check_outcome(outcome: Any, last_info: Any, report: EnvReport) -> bool:
    """Whether step() returned what play can go on with; its flags and info are judged, too."""
    if not isinstance(outcome, tuple) or len(outcome) != 5:
        got = f"{len(outcome)} values" if isinstance(outcome, tuple) else type(outcome).__name__
        report.add(
            f"step() returned {got} instead of (obs, reward, terminated, truncated, info)",
            "return the five values of Gymnasium ≥ 1.0; old Gym environments are converted "
            "by shimmy",
        )
        return False
    _, _, terminated, truncated, info = outcome
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(flag, bool | np.bool_):
            report.add(
                f"{name} is {type(flag).__name__}, not a bool",
                f"return bool({name}): a NaN or a string would count as true",
            )
    if not isinstance(info, dict):
        report.add(f"info is {type(info).__name__}, not a dict", "return {} if there is none")
        return False
    report.reports_success |= bool({"success", "is_success"} & set(info))
    if info is last_info:
        report.add(
            "step() returns the same info dictionary every time, so what was read from one "
            "step changes at the next",
            "return a new dictionary per step, for instance dict(self.info)",
        )
    return True


def _reset(env: Env, report: EnvReport, seed: int | None) -> Any:
    outcome = env.reset(seed=seed)
    if not isinstance(outcome, tuple) or len(outcome) != 2:
        report.add(
            f"reset() returned {type(outcome).__name__} instead of (obs, info)",
            "return a pair; old Gym environments are converted by shimmy",
        )
        return _FAILED
    return outcome[0]


def _check_reward(reward: Any, report: EnvReport) -> float:
    try:
        value = float(reward)
    except (TypeError, ValueError):
        report.add(f"the reward is {type(reward).__name__}, not a number", "return float(reward)")
        return math.nan
    if not math.isfinite(value):
        report.add(
            f"a reward is {value}", "find the division or logarithm that makes it; clip its input",
            "reward not finite",
        )  # fmt: skip
    return value


def _check_obs(env: Env, obs: Any, report: EnvReport) -> None:
    for what, remedy, kind in findings(env, obs):
        report.add(what, remedy, kind)
