"""amago's lanes as a vector environment of Stable-Baselines3."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from amago.baselines.rows import RowVectors
from amago.rollout.stats import RolloutRecord, RolloutTracker
from amago.types import ActionSpec, Array, Timestep, VectorEnv


class Sb3Lanes(VecEnv):
    """The same lanes, worlds and rows; an observation is a row as a vector (`RowVectors`).

    What Stable-Baselines3 calls an episode is a whole rollout, so that memory is kept from trial
    to trial. The records of finished rollouts gather in `records`.
    """

    def __init__(self, lanes: VectorEnv, rows: RowVectors) -> None:
        self.lanes, self.rows = lanes, rows
        self.records: list[RolloutRecord] = []
        self._tracker = RolloutTracker(lanes)
        self._action = np.zeros(0)
        space = spaces.Box(-np.inf, np.inf, (rows.width,), np.float32)
        super().__init__(lanes.num_lanes, space, _action_space(lanes.spec.action))

    def reset(self) -> Array:
        self._tracker = RolloutTracker(self.lanes)
        return self.rows.write(self.lanes.reset())

    def step_async(self, actions: Array) -> None:
        continuous = self.lanes.spec.action.kind == "continuous"
        self._action = np.asarray(actions).astype(np.float32 if continuous else np.int64)

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        step = self.lanes.step(self._action)
        self.records += self._tracker.add(step)
        reward = step.rows.prev_reward.copy()
        done = np.zeros(self.num_envs, np.bool_)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        assert not step.rows.last.any(), "lanes of a configuration reset within the same call"
        for rows, lanes in step.parts():
            for row in np.flatnonzero(rows.last):
                lane = lanes[row]
                done[lane], reward[lane] = True, rows.prev_reward[row]
                infos[lane] = self._end_of(rows, int(row))
        return self.rows.write(step.rows), reward, done, infos

    def _end_of(self, rows: Timestep, row: int) -> dict[str, Any]:
        """A final row, and whether its value counts: where a rollout was cut off."""
        return {
            "terminal_observation": self.rows.write(rows.select(np.array([row])))[0],
            "TimeLimit.truncated": not rows.terminal[row],
        }

    def take_records(self) -> list[RolloutRecord]:
        """The rollouts that ended since the last call."""
        records, self.records = self.records, []
        return records

    def close(self) -> None:
        self.lanes.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        if attr_name == "render_mode":
            return [None] * self.num_envs
        raise AttributeError(f"lanes have no attribute {attr_name!r}")

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(f"lanes have no attribute {attr_name!r}")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        raise AttributeError(f"lanes have no method {method_name!r}")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


def _action_space(action: ActionSpec) -> spaces.Space[Any]:
    """Agent actions as a space; environments of other bounds and offsets are mapped by envs."""
    if action.kind == "discrete":
        return spaces.Discrete(action.size)
    if action.kind == "multi_discrete":
        return spaces.MultiDiscrete(np.array(action.sizes))
    if action.kind == "multi_binary":
        # Stable-Baselines3 stores bits as int8, for which torch has no Bernoulli likelihood.
        return spaces.MultiDiscrete(np.full(action.size, 2))
    return spaces.Box(-1.0, 1.0, (action.size,), np.float32)
