"""Lanes of ordinary Gymnasium environments, stepped one after the other in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from amago.envs.goal_lanes import GoalLanes
from amago.envs.instructions import goals_of, with_instructions
from amago.envs.lanes import LaneVector, success_of
from amago.envs.spaces import ActionConverter, ObsConverter
from amago.types import Array, Curriculum, Step, Timestep

Env = gym.Env[Any, Any]
CURRICULUM = "curriculum"
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
    ) -> None:
        self._envs = [with_instructions(checked_env(make_env())) for _ in range(max(num_lanes, 1))]
        env = self._envs[0]
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
        self._latest: list[tuple[Any, dict[str, Any]]] = [(None, {})] * num_lanes
        """Every lane's observation and info: what an idle lane shows."""
        for other in self._envs[1:]:
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
    def curriculum(self) -> Curriculum:
        """The most advanced lane's, where the environment has an attribute of that name."""
        levels = [getattr(env.unwrapped, CURRICULUM, None) for env in self._envs]
        known = [int(level) for level in levels if level is not None]
        return {self.tasks[0]: max(known)} if known else {}

    @curriculum.setter
    def curriculum(self, curriculum: Curriculum) -> None:
        level = curriculum.get(self.tasks[0])
        for env in self._envs if level is not None else ():
            setattr(env.unwrapped, CURRICULUM, level)

    def reset(self) -> Timestep:
        lanes = np.arange(self.num_lanes)
        obs, infos = self._reset_envs(lanes)
        return self._reset_rows(obs, success_of(infos), self._goals.begin(lanes, infos))

    def step(self, action: Array, idle: Array | None = None) -> Step:
        executed = self._action.executed(action, self.num_lanes)
        reward = np.zeros(self.num_lanes, np.float32)
        terminated, truncated, first = np.zeros((3, self.num_lanes), np.bool_)
        for lane, env_action in enumerate(self._action.to_envs(executed)):
            if idle is not None and idle[lane]:
                continue
            obs, reward[lane], terminated[lane], truncated[lane], info = self._envs[lane].step(
                env_action
            )
            first[lane] = bool(info.get("first", False))
            self._latest[lane] = obs, info
        observations, infos = [obs for obs, _ in self._latest], [info for _, info in self._latest]
        rows = self._step_rows(
            self._obs.stack(observations),
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

    def _check_horizon(self, rows: Timestep) -> None:
        """Collecting waits for the end of rollouts, and must not wait for ever."""
        horizon = self.spec.horizon
        if horizon is not None and (rows.time[~rows.last] >= horizon).any():
            raise ValueError(
                f"expected every rollout of {self.spec.name} to end within its declared horizon "
                f"of {horizon} steps, got one that goes on; return truncated=True there, or wrap "
                "the environment in gymnasium.wrappers.TimeLimit"
            )

    def render(self) -> Array:
        return checked_frame(self._envs[0].render())

    def close(self) -> None:
        for env in self._envs:
            env.close()

    def _reset_envs(self, lanes: Array) -> tuple[dict[str, Array], list[dict[str, Any]]]:
        seeds = self._begin(lanes)
        for lane, seed in zip(lanes, seeds, strict=True):
            self._latest[lane] = self._envs[lane].reset(seed=int(seed))
        results = [self._latest[lane] for lane in lanes]
        return self._obs.stack([obs for obs, _ in results]), [info for _, info in results]


def checked_env(env: Any) -> Env:
    """Refuse anything that is not a Gymnasium environment."""
    if isinstance(env, gym.Env):
        return env
    if isinstance(env, gym.vector.VectorEnv):
        remedy = "hand a vector environment to amago.envs.vector.GymVector instead"
    else:
        remedy = "return an instance of gymnasium.Env (for old Gym, convert it with shimmy)"
    raise ValueError(
        f"expected make_env() to return a gymnasium.Env, got {type(env).__name__}; {remedy}"
    )


def checked_frame(frame: Any) -> Array:
    """Refuse a rendering that is not one RGB image."""
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
