"""Recorded episodes of one environment, checked and turned into trajectories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from amago.envs.recorded import check_recorded
from amago.envs.spaces import ActionConverter, ObsConverter
from amago.types import Array, Trajectory

OBS = "observations"


class Importer:
    """Turns recorded episodes of one environment into trajectories."""

    def __init__(self, obs: ObsConverter, action: ActionConverter) -> None:
        self.obs, self.action = obs, action

    def episode(
        self,
        obs: Mapping[str, Any],
        actions: Any,
        rewards: Any,
        terminated: bool,
        where: str,
    ) -> Trajectory:
        """One episode of T steps from T+1 observations by flat key, T actions and T rewards."""
        rewards, actions = np.asarray(rewards), np.asarray(actions)
        steps = len(rewards)
        if rewards.shape != (steps,) or rewards.dtype.kind not in "biuf":
            raise ValueError(
                f"{where}: expected one number per step as rewards, got {rewards.dtype} of shape "
                f"{list(rewards.shape)}"
            )
        if not np.isfinite(rewards).all():
            raise ValueError(f"{where}: rewards are not finite; leave that episode out")
        flat = self._observations(obs, steps + 1, where)
        expected = (steps, *(self.action.space.shape or ()))
        if actions.shape != expected:
            raise ValueError(
                f"{where}: expected actions of shape {list(expected)} for {steps} rewards, got "
                f"{list(actions.shape)}; record one action of {self.action.space} per step"
            )
        check_recorded(actions, self.action.space, f"{where}: actions")
        rows = self.action.from_env(actions).astype(self.action.spec.stored_dtype)
        start = np.zeros(steps + 1, np.bool_)
        start[0] = True
        end = np.zeros(steps + 1, np.bool_)
        end[-1] = terminated
        return Trajectory(
            flat,
            np.concatenate([np.zeros_like(rows[:1]), rows]),
            np.concatenate([[0.0], rewards]).astype(np.float32),
            first=start,
            terminal=end,
            task=where,
        )

    def _observations(self, obs: Mapping[str, Any], num_rows: int, where: str) -> dict[str, Array]:
        if set(obs) != set(self.obs.specs):
            raise ValueError(
                f"{where}: expected observations {sorted(self.obs.specs)}, got {sorted(obs)}; "
                f"call them {OBS}/KEY, or {OBS} alone for a single array"
            )
        for key, values in obs.items():
            rows = np.asarray(values)
            shape = (num_rows, *(self.obs.spaces[key].shape or ()))
            if rows.shape != shape:
                raise ValueError(
                    f"{where}: expected observation {key!r} of shape {list(shape)}, one row more "
                    f"than there are steps, got {list(rows.shape)}; the row after the last action "
                    "belongs to the episode, too"
                )
            check_recorded(rows, self.obs.spaces[key], f"{where}: observation {key!r}")
        return self.obs.flat_batch(obs)
