"""What every vector of lanes shares: world seeds, counters and the making of rows."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from amago.envs.faults import EnvFaultError, Place, fault_among
from amago.envs.spaces import ActionConverter, ObsConverter, check_action_mask
from amago.goals import GoalSpec
from amago.types import ActionSpec, Array, Curriculum, EnvSpec, Timestep

_LOG = logging.getLogger("amago")
SUCCESS_KEYS = ("success", "is_success")
"""Entries of an info dictionary that say whether the task is solved."""


def world_seed(seed: int, lane: int, episode: int) -> int:
    """The seed of a lane's n-th rollout: a function of these three numbers alone."""
    return int(np.random.SeedSequence((seed, lane, episode)).generate_state(1)[0])


class LaneVector:
    """Counters of N lanes, of which the first has the number `first_lane` in the whole run."""

    def __init__(
        self,
        name: str,
        obs: ObsConverter,
        action: ActionConverter,
        horizon: int | None,
        *,
        num_lanes: int,
        seed: int,
        first_lane: int = 0,
        goals: GoalSpec | None = None,
    ) -> None:
        if num_lanes < 1:
            raise ValueError(f"expected at least 1 lane, got {num_lanes}")
        if seed < 0:
            raise ValueError(f"expected a seed of 0 or more, got {seed}")
        check_action_mask(obs.specs, action.spec)
        self.spec = EnvSpec(name, obs.specs, action.spec, horizon, goals)
        self.num_lanes = num_lanes
        self.tasks = (name,) * num_lanes
        self.horizons = (horizon,) * num_lanes
        self.seed = seed
        self.first_lane = first_lane
        self._obs = obs
        self._action = action
        self._episodes = np.zeros(num_lanes, np.int64)
        self._time = np.zeros(num_lanes, np.int64)
        self._world_seed = np.zeros(num_lanes, np.int64)
        self._reports_success = False
        self._told = False

    @property
    def restarts(self) -> int:
        """Environments that were replaced because they failed."""
        return 0

    @property
    def episodes(self) -> Array:
        """Rollouts begun per lane [N], read-only; assign a whole array to resume."""
        return read_only(self._episodes)

    @episodes.setter
    def episodes(self, episodes: Array) -> None:
        self._episodes = checked_episodes(episodes, self.num_lanes)

    @property
    def curriculum(self) -> Curriculum:
        """None of the tasks' own, unless a vector says otherwise."""
        return {}

    @curriculum.setter
    def curriculum(self, curriculum: Curriculum) -> None:
        """Nothing to assign it to."""

    def _begin(self, lanes: Array) -> Array:
        """Open a rollout in some lanes; the seeds of their new worlds."""
        seeds = [
            world_seed(self.seed, self.first_lane + int(lane), int(self._episodes[lane]))
            for lane in lanes
        ]
        self._episodes[lanes] += 1
        self._time[lanes] = 0
        self._world_seed[lanes] = seeds
        return np.array(seeds, np.int64)

    def _reset_rows(
        self, obs: dict[str, Array], success: Array | None, goals: Mapping[str, Any]
    ) -> Timestep:
        """The rows after an outer reset of every lane; `goals` are the instruction's fields."""
        count = self.num_lanes
        return Timestep(
            obs=obs,
            prev_action=no_action(self.spec.action, count),
            prev_reward=np.zeros(count, np.float32),
            time=np.zeros(count, np.int64),
            first=np.ones(count, np.bool_),
            terminal=np.zeros(count, np.bool_),
            last=np.zeros(count, np.bool_),
            world_seed=self._world_seed.copy(),
            success=self._success(success),
            **goals,
        )

    def _step_rows(
        self,
        obs: dict[str, Array],
        executed: Array,
        reward: Array,
        terminated: Array,
        truncated: Array,
        first: Array,
        success: Array | None,
        goals: Mapping[str, Any],
        idle: Array | None = None,
    ) -> Timestep:
        """The rows after one executed action in every lane; advances the clocks.

        The clock of an idle lane stands still, and its rollout does not end.
        """
        moving = np.True_ if idle is None else ~idle
        self._time += moving
        rows = Timestep(
            obs=obs,
            prev_action=executed,
            prev_reward=np.asarray(reward).astype(np.float32),
            time=self._time.copy(),
            first=np.array(first, np.bool_),
            terminal=np.array(terminated, np.bool_),
            last=np.asarray((terminated | truncated) & moving, np.bool_),
            world_seed=self._world_seed.copy(),
            success=self._success(success),
            **goals,
        )
        self._check_finite(rows)
        return rows

    def _place(self, lane: int) -> Place:
        """Where a lane is."""
        seed, step = int(self._world_seed[lane]), int(self._time[lane])
        return Place(self.spec.name, self.first_lane + lane, seed, step)

    def _fault(self, error: BaseException) -> EnvFaultError:
        """An error of lanes that are stepped together: it is one of theirs."""
        return fault_among([self._place(lane) for lane in range(self.num_lanes)], error)

    def _check_horizon(self, rows: Timestep) -> None:
        """Collecting waits for the end of rollouts, and must not wait for ever."""
        horizon = self.spec.horizon
        if horizon is None:
            return
        late = ~rows.last & (rows.time >= horizon)
        if late.any():
            raise ValueError(
                f"expected every rollout of {self.spec.name} to end within its declared horizon "
                f"of {horizon} steps, got one that goes on ({self._place(int(late.argmax()))}); "
                "return truncated=True there, or wrap the environment in "
                "gymnasium.wrappers.TimeLimit"
            )

    def _check_finite(self, rows: Timestep) -> None:
        """Tell of the first value that is not finite, at once; training skips such batches."""
        if self._told:
            return
        columns = [rows.prev_reward, *(a for a in rows.obs.values() if a.dtype.kind == "f")]
        # A sum is quick; it may also overflow, so that the values themselves decide.
        if all(math.isfinite(column.sum()) for column in columns):
            return
        wrong = np.zeros(self.num_lanes, np.bool_)
        for column in columns:
            wrong |= ~np.isfinite(column).reshape(self.num_lanes, -1).all(axis=1)
        if wrong.any():
            self._told = True
            place = self._place(int(wrong.argmax()))
            _LOG.warning(f"NaN or infinity in an observation or reward: {place}")

    def _restart(
        self, rows: Timestep, lanes: Array, obs: dict[str, Array], goals: Mapping[str, Any]
    ) -> Timestep:
        """Overwrite some lanes of freshly made rows with the reset rows of their next rollout.

        `goals` are the instruction's fields of all lanes after that reset.
        """
        for key, values in obs.items():
            rows.obs[key][lanes] = values
        rows.prev_action[lanes] = 0
        rows.prev_reward[lanes] = 0.0
        rows.time[lanes] = 0
        rows.first[lanes] = True
        rows.terminal[lanes] = False
        rows.last[lanes] = False
        rows.world_seed[lanes] = self._world_seed[lanes]
        if rows.success is not None:
            rows.success[lanes] = False
        return replace(rows, **goals)

    def _success(self, success: Array | None) -> Array | None:
        # An environment may mention success only when it happens. From then on silence means
        # False, or the success rate would be the mean over successes.
        if success is not None:
            self._reports_success = True
            return np.array(success, np.bool_)
        return np.zeros(self.num_lanes, np.bool_) if self._reports_success else None


def no_action(spec: ActionSpec, num_lanes: int) -> Array:
    """What stands in the place of the previous action where there is none."""
    dtype = np.float32 if spec.kind == "continuous" else np.int64
    return np.zeros((num_lanes, *spec.shape), dtype)


def success_of(infos: Sequence[Mapping[str, Any]]) -> Array | None:
    """Success per info [N], or None where no info mentions it."""
    found = [next((info[key] for key in SUCCESS_KEYS if key in info), None) for info in infos]
    if all(value is None for value in found):
        return None
    return np.array([value is not None and bool(value) for value in found], np.bool_)


def checked_episodes(episodes: Array, num_lanes: int) -> Array:
    """A copy of the rollout counters, one per lane."""
    episodes = np.array(episodes, np.int64)
    if episodes.shape != (num_lanes,) or (episodes < 0).any():
        raise ValueError(
            f"expected {num_lanes} counters of 0 or more, one per lane, got {episodes.tolist()}; "
            "resume with the number of lanes that the run was started with"
        )
    return episodes


def furthest(parts: Sequence[Curriculum]) -> Curriculum:
    """Of every task the level of the part that has come furthest."""
    tasks = {task for part in parts for task in part}
    return {task: max(part[task] for part in parts if task in part) for task in sorted(tasks)}


def read_only(array: Array) -> Array:
    """A view that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
