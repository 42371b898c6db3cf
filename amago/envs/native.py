"""Lanes of a task that is written for a whole batch of worlds."""

from __future__ import annotations

import numpy as np

from amago.envs.lanes import LaneVector
from amago.envs.spaces import ActionConverter, ObsConverter
from amago.envs.tasks.base import Task
from amago.stopping import Terminated
from amago.types import Array, Step, Timestep


class NativeVector(LaneVector):
    """N lanes of one natively batched task; a lane that ends is reset within the same call."""

    def __init__(
        self,
        task: Task,
        num_lanes: int,
        seed: int,
        *,
        first_lane: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name or type(task).__name__,
            ObsConverter(task.observation_space),
            ActionConverter(task.action_space),
            task.horizon,
            num_lanes=num_lanes,
            seed=seed,
            first_lane=first_lane,
            goals=task.goals,
        )
        self.task = task
        self._none = np.zeros(num_lanes, np.bool_)
        task.allocate(num_lanes)

    def reset(self) -> Timestep:
        lanes = np.arange(self.num_lanes)
        self.task.reset_lanes(lanes, self._begin(lanes))
        return self._reset_rows(self.task.observe(), self._none, self.task.goal_rows())

    def step(self, action: Array, idle: Array | None = None) -> Step:
        # Idle lanes are computed, too: leaving them out would cost NumPy more than it saves.
        executed = self._action.executed(action, self.num_lanes)
        try:
            reward, terminated, first, success = self.task.step(executed)
        except Terminated:
            raise
        except (Exception, SystemExit) as error:
            raise self._fault(error) from error
        rows = self._step_rows(
            self.task.observe(),
            executed,
            reward,
            terminated,
            self._none,
            first,
            success,
            self.task.goal_rows(),
            idle,
        )
        ended = np.flatnonzero(rows.last)
        if not len(ended):
            return Step(rows)
        final = rows.select(ended)
        self.task.reset_lanes(ended, self._begin(ended))
        fresh = {key: values[ended] for key, values in self.task.observe().items()}
        return Step(self._restart(rows, ended, fresh, self.task.goal_rows()), final, ended)

    def render(self) -> Array:
        return self.task.render(0)

    def close(self) -> None:
        """Nothing to release."""
