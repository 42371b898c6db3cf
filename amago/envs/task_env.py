"""The native tasks as ordinary Gymnasium environments: a batch of one."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from amago.envs.catalogue import make_task
from amago.envs.instructions import INSTRUCTION, report
from amago.envs.tasks.goal_task import GoalTask
from amago.types import BARE_KEY, Array


class TaskEnv(gym.Env[Any, Any]):
    """One lane of a native task.

    `reset(seed=s)` enters the world of seed s; without a seed the world is drawn anew, or
    kept with `options={"same_world": True}`. Tasks with goals take any instruction that their
    world allows, as text or goals, in `options={"instruction": ...}`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012
    keeps_world = True

    def __init__(self, task_id: str, render_mode: str | None = None, **kwargs: Any) -> None:
        self.task = make_task(task_id, **kwargs)
        self.task.allocate(1)
        self.render_mode = render_mode
        self.observation_space = self.task.observation_space
        self.action_space = self.task.action_space
        self.horizon = self.task.horizon
        if isinstance(self.task, GoalTask):
            self.goals, self.follows_instructions = self.task.goals, True
        self._world_seed: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        keep = bool(options and options.get("same_world")) and self._world_seed is not None
        if seed is not None:
            self._world_seed = seed
        elif not keep:
            self._world_seed = int(self.np_random.integers(2**32))
        self.task.reset_lanes(np.array([0]), np.array([self._world_seed]))
        asked = (options or {}).get(INSTRUCTION)
        if asked is not None:
            if not isinstance(self.task, GoalTask):
                raise ValueError(
                    f"{type(self.task).__name__} follows no instructions, got {asked!r}"
                )
            self.task.instruct(0, asked)
        return self._observe(), self._goal_info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward, terminated, first, success = self.task.step(np.asarray(action)[None])
        info: dict[str, Any] = {"first": bool(first[0]), "success": bool(success[0])}
        info |= self._goal_info()
        return self._observe(), float(reward[0]), bool(terminated[0]), False, info

    def render(self) -> Array | None:
        return self.task.render(0) if self.render_mode == "rgb_array" else None

    def _goal_info(self) -> dict[str, Any]:
        task = self.task
        if not isinstance(task, GoalTask):
            return {}
        asked = task.instruction[0, : task.num_goals[0]]
        return report(asked, int(task.progress[0]), task.achieved[1])

    def _observe(self) -> Any:
        rows = {key: values[0] for key, values in self.task.observe().items()}
        return rows if isinstance(self.observation_space, gym.spaces.Dict) else rows[BARE_KEY]
