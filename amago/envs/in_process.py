"""Lanes of ordinary Gymnasium environments, stepped one after the other in this process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import gymnasium as gym
import numpy as np

from amago.envs.foreign import what_it_is
from amago.envs.goal_lanes import GoalLanes
from amago.envs.instructions import goals_of, with_instructions
from amago.envs.lane import Lane
from amago.envs.lanes import LaneVector, success_of
from amago.envs.settings import EnvSettings
from amago.envs.spaces import ActionConverter, ObsConverter
from amago.envs.symbolic_grid import SymbolicGrid, is_minigrid
from amago.envs.watchdog import Watchdog
from amago.types import Array, Curriculum, Step, Timestep

Env = gym.Env[Any, Any]
_CURRICULUM = "curriculum"
"""An environment's attribute: a whole number that grows as more is achieved. The environment
uses only what it was last assigned, so that all lanes ask for equally much in one epoch."""


class InProcessVector(LaneVector):
    """N environments in a loop; a lane that ends is reset within the same call."""

    def __init__(
        self,
        make_env: Callable[[], Env],
        num_lanes: int,
        seed: int,
        *,
        first_lane: int = 0,
        name: str | None = None,
        horizon: int | None = None,
        settings: EnvSettings | None = None,
    ) -> None:
        """`settings` describe what `make_env` makes, if it is not a user's own function."""

        def make() -> Env:
            return with_instructions(checked_env(make_env()))

        numbers = range(first_lane, first_lane + max(num_lanes, 1))
        self._lanes = [Lane(make, number, settings) for number in numbers]
        env = self._lanes[0].env
        super().__init__(
            name or name_of(env),
            ObsConverter(env.observation_space),
            ActionConverter(env.action_space),
            horizon or horizon_of(env),
            num_lanes=num_lanes,
            seed=seed,
            first_lane=first_lane,
            goals=goals_of(env),
        )
        goals = self.spec.goals
        self._goals = GoalLanes(goals, num_lanes)
        self._watchdog = Watchdog(settings.timeout_seconds if settings is not None else math.inf)
        self._latest: list[tuple[Any, dict[str, Any]]] = [(None, {})] * num_lanes
        """Every lane's observation and info: what an idle lane shows."""
        for lane in self._lanes:
            lane.name = self.spec.name
        for other in (lane.env for lane in self._lanes[1:]):
            same_obs = ObsConverter(other.observation_space).specs == self._obs.specs
            same_goals = goals_of(other) == goals
            if not (same_obs and same_goals and other.action_space == env.action_space):
                raise ValueError(
                    "expected every lane to have the spaces and goals of the first, "
                    f"{env.observation_space}, {env.action_space} and {goals}, got "
                    f"{other.observation_space}, {other.action_space} and {goals_of(other)}; pad "
                    "them to common spaces"
                )

    @property
    def redrawn(self) -> int:
        """Worlds so far in which the instruction that was asked for is impossible."""
        found = (env for env in self._envs if env.has_wrapper_attr("redrawn"))
        return sum(int(env.get_wrapper_attr("redrawn")) for env in found)

    @property
    def curriculum(self) -> Curriculum:
        """The most advanced lane's, where the environment has an attribute of that name."""
        levels = [getattr(env.unwrapped, _CURRICULUM, None) for env in self._envs]
        known = [int(level) for level in levels if level is not None]
        return {self.tasks[0]: max(known)} if known else {}

    @curriculum.setter
    def curriculum(self, curriculum: Curriculum) -> None:
        level = curriculum.get(self.tasks[0])
        for env in self._envs if level is not None else ():
            setattr(env.unwrapped, _CURRICULUM, level)

    @property
    def restarts(self) -> int:
        return sum(lane.restarts for lane in self._lanes)

    def reset(self) -> Timestep:
        if math.isfinite(self._watchdog.seconds):
            self._watchdog.start()
        lanes = np.arange(self.num_lanes)
        obs, infos = self._reset_envs(lanes)
        return self._reset_rows(obs, success_of(infos), self._goals.begin(lanes, infos))

    def step(self, action: Array, idle: Array | None = None) -> Step:
        executed = self._action.executed(action, self.num_lanes)
        reward = np.zeros(self.num_lanes, np.float32)
        terminated, truncated, first = np.zeros((3, self.num_lanes), np.bool_)
        try:
            for lane, env_action in enumerate(self._action.to_envs(executed)):
                if idle is not None and idle[lane]:
                    continue
                self._watchdog.enter(self._lanes[lane])
                outcome = self._lanes[lane].step(env_action)
                obs, reward[lane], terminated[lane], truncated[lane], info = outcome
                first[lane] = bool(info.get("first", False))
                self._latest[lane] = obs, info
        finally:
            self._watchdog.leave()
        infos = [info for _, info in self._latest]
        rows = self._step_rows(
            self._stacked(range(self.num_lanes)),
            executed,
            reward,
            terminated,
            truncated,
            first,
            success_of(infos),
            self._goals.step(infos),
            idle,
        )
        self._check_horizon(rows)
        ended = np.flatnonzero(rows.last)
        if not len(ended):
            return Step(rows)
        final = rows.select(ended)
        fresh, reset_infos = self._reset_envs(ended)
        rows = self._restart(rows, ended, fresh, self._goals.begin(ended, reset_infos))
        return Step(rows, final, ended)

    def render(self) -> Array:
        env = self._lanes[0].env
        return checked_frame(env.render, name_of(env))

    def close(self) -> None:
        self._watchdog.close()
        for env in self._envs:
            env.close()

    @property
    def first_env(self) -> Env:
        """The environment of lane 0."""
        return self._lanes[0].env

    @property
    def _envs(self) -> list[Env]:
        return [lane.env for lane in self._lanes]

    def _reset_envs(self, lanes: Array) -> tuple[dict[str, Array], list[dict[str, Any]]]:
        seeds = self._begin(lanes)
        try:
            for lane, seed in zip(lanes, seeds, strict=True):
                one = np.array([lane])
                self._watchdog.enter(self._lanes[lane])
                self._latest[lane] = self._lanes[lane].reset(
                    int(seed), lambda one=one: int(self._begin(one)[0])
                )
        finally:
            self._watchdog.leave()
        return self._stacked(lanes), [self._latest[lane][1] for lane in lanes]

    def _stacked(self, lanes: Iterable[int]) -> dict[str, Array]:
        """The latest observations of some lanes; an error names the lane that it comes from."""
        lanes = list(lanes)
        try:
            return self._obs.stack([self._latest[lane][0] for lane in lanes])
        except Exception:
            for lane in lanes:
                try:
                    self._obs.stack([self._latest[lane][0]])
                except Exception as error:
                    raise self._lanes[lane].fault(error) from error
            raise


def checked_env(env: Any) -> Env:
    """Refuse anything that is not a Gymnasium environment."""
    if isinstance(env, SymbolicGrid):
        return env
    if isinstance(env, gym.Env):
        return SymbolicGrid(env) if is_minigrid(env) else env
    what, remedy = what_it_is(env)
    raise ValueError(f"expected make_env() to return a gymnasium.Env, got {what}; {remedy}")


def checked_frame(render: Callable[[], Any], name: str) -> Array:
    """What an environment draws; ValueError where that is not one RGB image."""
    try:
        frame = render()
    except NotImplementedError as error:
        raise ValueError(
            f"{name} cannot be drawn, because it has no render(); let render() return an RGB "
            "array [height, width, 3]"
        ) from error
    image = np.asarray(frame)
    if image.ndim != 3 or image.shape[-1] != 3:
        raise ValueError(
            f"expected an RGB frame [height, width, 3] from render(), got {type(frame).__name__}; "
            "make the environment with render_mode='rgb_array'"
        )
    return image


def name_of(env: Env) -> str:
    """The registered id, or else the class."""
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


def horizon_of(env: Env) -> int | None:
    """Most steps of a rollout: a wrapper's word (outermost first), the env's, or its spec's."""
    layer: Any = env
    candidates: list[Any] = []
    while layer is not None:
        candidates.append(getattr(layer, "horizon", None))
        if isinstance(layer, gym.wrappers.TimeLimit):
            candidates.append(layer._max_episode_steps)
        layer = layer.env if isinstance(layer, gym.Wrapper) else None
    candidates.append(env.spec.max_episode_steps if env.spec is not None else None)
    return next((int(c) for c in candidates if isinstance(c, int | np.integer) and c > 0), None)
