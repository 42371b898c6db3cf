"""Lanes of a user's own Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from amago.envs.goal_lanes import GoalLanes, lane_infos
from amago.envs.in_process import checked_frame, horizon_of
from amago.envs.lanes import SUCCESS_KEYS, LaneVector
from amago.envs.spaces import ActionConverter, ObsConverter
from amago.envs.symbolic_grid import readable_space
from amago.goals import GoalSpec
from amago.stopping import Terminated
from amago.types import Array, Step, Timestep


class GymVector(LaneVector):
    """A Gymnasium vector environment of any autoreset mode as lanes.

    Only `DISABLED` lets a single lane be seeded, and so gives every rollout its own world
    seed. In the other modes a lane is seeded by `reset` alone, later rollouts go on with its
    generator, and `world_seed` names the seed that this generator last received. A vector
    environment that takes one seed for all lanes (`seed_lanes=False`; assumed of everything
    but SyncVectorEnv and AsyncVectorEnv) is seeded by `reset` alone in every mode.

    Lanes that follow instructions are wrapped in FollowInstructions, and `goals` is their
    GoalSpec.
    """

    def __init__(
        self,
        env: gym.vector.VectorEnv[Any, Any, Any],
        seed: int,
        *,
        name: str | None = None,
        horizon: int | None = None,
        seed_lanes: bool | None = None,
        goals: GoalSpec | None = None,
    ) -> None:
        if not isinstance(env, gym.vector.VectorEnv):
            raise ValueError(
                f"expected a gymnasium.vector.VectorEnv, got {type(env).__name__}; for single "
                "environments use amago.envs.vector.InProcessVector"
            )
        super().__init__(
            name or (env.spec.id if env.spec is not None else type(env.unwrapped).__name__),
            ObsConverter(readable_space(env.single_observation_space)),
            ActionConverter(env.single_action_space),
            horizon or _horizon_of(env),
            num_lanes=env.num_envs,
            seed=seed,
            goals=goals,
        )
        self._goals = GoalLanes(goals, self.num_lanes)
        self._env = env
        self._mode = _mode_of(env)
        gymnasium_own = isinstance(env.unwrapped, SyncVectorEnv | AsyncVectorEnv)
        self._seed_lanes = gymnasium_own if seed_lanes is None else seed_lanes
        self._pending = np.zeros(self.num_lanes, np.bool_)

    def reset(self) -> Timestep:
        lanes = np.arange(self.num_lanes)
        seeds = self._begin(lanes)
        if not self._seed_lanes:
            self._world_seed[:] = seeds[0]
        seed = seeds.tolist() if self._seed_lanes else int(seeds[0])
        try:
            obs, info = self._env.reset(seed=seed)
        except Terminated:
            raise
        except (Exception, SystemExit) as error:
            raise self._fault(error) from error
        self._pending[:] = False
        goals = self._goals.begin(lanes, lane_infos(info, self.num_lanes))
        return self._reset_rows(self._obs.batch(obs), self._success_in(info), goals)

    def step(self, action: Array, idle: Array | None = None) -> Step:
        # A Gymnasium vector steps all its lanes; nobody looks at the rows of idle ones.
        executed = self._action.executed(action, self.num_lanes)
        try:
            obs, reward, terminated, truncated, info = self._env.step(self._action.to_env(executed))
        except Terminated:
            raise
        except (Exception, SystemExit) as error:
            raise self._fault(error) from error
        rows = self._step_rows(
            self._obs.batch(obs),
            executed,
            reward,
            np.asarray(terminated, np.bool_),
            np.asarray(truncated, np.bool_),
            self._flag(info, "first"),
            self._success_in(info),
            self._goals.step(self._step_infos(info, terminated, truncated)),
        )
        if self._mode is AutoresetMode.NEXT_STEP:
            return self._resume_pending(rows, info)
        self._check_horizon(rows)
        ended = np.flatnonzero(rows.last)
        if not len(ended):
            return Step(rows)
        if self._mode is AutoresetMode.SAME_STEP:
            return self._split_same_step(rows, ended, info)
        final = rows.select(ended)
        return Step(self._restart(rows, ended, *self._reset_masked(ended)), final, ended)

    def render(self) -> Array:
        return checked_frame(self._first_frame, self.spec.name)

    def _first_frame(self) -> Any:
        frames: Any = self._env.render()
        return frames[0] if isinstance(frames, tuple | list) else frames

    def close(self) -> None:
        self._env.close()

    def _resume_pending(self, rows: Timestep, info: Mapping[str, Any]) -> Step:
        """Lanes whose last row was final have just been reset, and ignored their action."""
        lanes = np.flatnonzero(self._pending)
        if len(lanes):
            self._continue_generators(lanes)
            rows = self._restart(rows, lanes, {}, self._begin_goals(lanes, info))
        self._check_horizon(rows)
        self._pending = rows.last.copy()
        return Step(rows)

    def _split_same_step(self, rows: Timestep, ended: Array, info: Mapping[str, Any]) -> Step:
        """The observation is already the next rollout's; the final one is in the info."""
        if "final_obs" not in info:
            raise ValueError(
                "expected info['final_obs'] where a lane ends under autoreset mode SAME_STEP, got "
                f"the keys {sorted(info)}; add it, or use AutoresetMode.NEXT_STEP"
            )
        final_obs = info["final_obs"]
        if isinstance(final_obs, np.ndarray) and final_obs.dtype == object:
            obs = self._obs.stack([final_obs[lane] for lane in ended])
        else:
            obs = {key: values[ended] for key, values in self._obs.batch(final_obs).items()}
        final_info = info.get("final_info", {})
        success = self._success(self._success_in(final_info))
        final = replace(
            rows.select(ended),
            obs=obs,
            first=self._flag(final_info, "first")[ended],
            success=None if success is None else success[ended],
        )
        if rows.success is None:
            rows = replace(rows, success=self._success(None))
        self._continue_generators(ended)
        rows = self._restart(rows, ended, {}, self._begin_goals(ended, info))
        return Step(rows, final, ended)

    def _reset_masked(self, lanes: Array) -> tuple[dict[str, Array], dict[str, Any]]:
        mask = np.zeros(self.num_lanes, np.bool_)
        mask[lanes] = True
        if self._seed_lanes:
            seeds: list[int | None] = [None] * self.num_lanes
            for lane, seed in zip(lanes, self._begin(lanes), strict=True):
                seeds[lane] = int(seed)
            # Gymnasium's own classes take a list here; the base class does not promise it.
            obs, info = self._env.reset(seed=seeds, options={"reset_mask": mask})  # type: ignore[arg-type]
        else:
            self._continue_generators(lanes)
            obs, info = self._env.reset(options={"reset_mask": mask})
        fresh = {key: values[lanes] for key, values in self._obs.batch(obs).items()}
        return fresh, self._begin_goals(lanes, info)

    def _begin_goals(self, lanes: Array, info: Mapping[str, Any]) -> dict[str, Any]:
        infos = lane_infos(info, self.num_lanes)
        return self._goals.begin(lanes, [infos[lane] for lane in lanes])

    def _step_infos(
        self, info: Mapping[str, Any], terminated: Array, truncated: Array
    ) -> list[Mapping[str, Any]]:
        """What the steps themselves reported: SAME_STEP keeps it apart where lanes ended."""
        infos = lane_infos(info, self.num_lanes)
        if self._mode is AutoresetMode.SAME_STEP:
            final = lane_infos(info.get("final_info", {}), self.num_lanes)
            ended = np.flatnonzero(np.logical_or(terminated, truncated))
            for lane in ended:
                infos[lane] = final[lane]
        return infos

    def _continue_generators(self, lanes: Array) -> None:
        """Open rollouts that the environment began by itself, without a new seed."""
        self._episodes[lanes] += 1
        self._time[lanes] = 0

    def _flag(self, info: Mapping[str, Any], key: str) -> Array:
        """One boolean per lane; lanes that did not report it are False."""
        values = np.zeros(self.num_lanes, np.bool_)
        if key in info:
            present = info.get(f"_{key}", np.ones(self.num_lanes, np.bool_))
            values[present] = np.asarray(info[key])[present].astype(np.bool_)
        return values

    def _success_in(self, info: Mapping[str, Any]) -> Array | None:
        key = next((key for key in SUCCESS_KEYS if key in info), None)
        return None if key is None else self._flag(info, key)


def _mode_of(env: gym.vector.VectorEnv[Any, Any, Any]) -> AutoresetMode:
    mode = env.metadata.get("autoreset_mode")
    if not isinstance(mode, AutoresetMode):
        try:
            return AutoresetMode(mode)
        except ValueError:
            raise ValueError(
                f"expected env.metadata['autoreset_mode'] to be one of "
                f"{', '.join(str(m) for m in AutoresetMode)}, got {mode!r}; set it to what the "
                "environment does when a lane ends"
            ) from None
    return mode


def _horizon_of(env: gym.vector.VectorEnv[Any, Any, Any]) -> int | None:
    if env.spec is not None and env.spec.max_episode_steps:
        return int(env.spec.max_episode_steps)
    if isinstance(env.unwrapped, SyncVectorEnv):
        return horizon_of(env.unwrapped.envs[0])
    horizon = getattr(env.unwrapped, "horizon", None)
    return horizon if isinstance(horizon, int) else None
