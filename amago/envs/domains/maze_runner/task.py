"""MazeRunner: reach places in an unknown maze, one after the other."""

from __future__ import annotations

import numpy as np

from amago import ragged
from amago.envs.domains.maze_runner import maze
from amago.envs.tasks import draw
from amago.envs.tasks.base import Eyes, check_at_least
from amago.envs.tasks.goal_task import GoalTask
from amago.goals import GoalSpec
from amago.ragged import Ragged
from amago.types import BARE_KEY, Array

_SMALL = 15
_HORIZONS = (400, 1000)
"""Steps up to size 15, and beyond (paper appendix C.4)."""


class MazeRunner(GoalTask):
    """Goals are cells (x, y), achieved by every step that ends there; never the spawn cell.

    Actions left, up, right, down; continuous ones go along the axis of their larger number.
    `rewired` permutes what the four actions do, anew in each world.
    """

    def __init__(
        self,
        size: int = _SMALL,
        horizon: int | None = None,
        max_goals: int = 3,
        min_goals: int = 1,
        position: bool = True,
        rewired: bool = False,
        continuous: bool = False,
    ) -> None:
        from gymnasium import spaces

        check_at_least(maze.SMALLEST, size=size)
        if size % 2 == 0:
            raise ValueError(
                f"expected an odd size, since walls stand on even cells, got {size}; use {size + 1}"
            )
        self.size = size
        self.horizon = _HORIZONS[size > _SMALL] if horizon is None else horizon
        check_at_least(1, horizon=self.horizon, min_goals=min_goals)
        check_at_least(min_goals, max_goals=max_goals)
        self.min_goals = min_goals
        self.position_shown, self.rewired, self.continuous = position, rewired, continuous
        self.spawn = np.array(maze.spawn_cell(size))
        self.goals = GoalSpec(max_goals, 2, low=(1, 1), high=(size - 2, size - 2))
        self.observation_space = spaces.Box(0.0, 1.0, (6 if position else 4,), np.float32)
        self.action_space = (
            spaces.Box(-1.0, 1.0, (2,), np.float32) if continuous else spaces.Discrete(4)
        )

    def allocate(self, num_lanes: int) -> None:
        super().allocate(num_lanes)
        self.walls = np.zeros((num_lanes, self.size, self.size), np.bool_)
        self.depths = np.zeros((num_lanes, self.size, self.size, 4), np.uint8)
        self.directions = np.zeros((num_lanes, 4), np.int64)
        """What each action does: an index into maze.MOVES."""
        self.position = np.zeros((num_lanes, 2), np.int64)
        self._lanes = np.arange(num_lanes)

    def build(self, lane: int, rng: np.random.Generator) -> Array:
        self.walls[lane] = maze.grow(self.size, rng)
        self.depths[lane] = maze.depths(self.walls[lane])
        self.directions[lane] = rng.permutation(4) if self.rewired else np.arange(4)
        num_goals = int(rng.integers(self.min_goals, self.goals.max_goals + 1))
        cells = self.achievable(lane)
        return cells[rng.permutation(len(cells))[:num_goals]]

    def achievable(self, lane: int) -> Array:
        free = ~self.walls[lane]
        free[self.spawn[1], self.spawn[0]] = False
        return np.argwhere(free)[:, ::-1].astype(self.goals.dtype)

    def start(self, lanes: Array) -> None:
        self.position[lanes] = self.spawn

    def move(self, action: Array) -> Ragged:
        if self.continuous:
            action = _cardinal(action)
        to = self.position + maze.MOVES[self.directions[self._lanes, action]]
        blocked = self.walls[self._lanes, to[:, 1], to[:, 0]]
        self.position = np.where(blocked[:, None], self.position, to)
        counts = (self.position != self.spawn).any(axis=1)
        return ragged.of_counts(counts, self.position[counts].astype(self.goals.dtype))

    def observe(self) -> dict[str, Array]:
        x, y = self.position.T
        obs = np.empty((self.num_lanes, 6), np.float32)
        obs[:, :4] = self.depths[self._lanes, y, x]
        obs[:, 4:] = self.position
        return {BARE_KEY: obs[:, : 6 if self.position_shown else 4] / self.size}

    def best_steps(self, lane: int) -> Array:
        """Shortest ways from goal to goal in the known maze."""
        legs, at = [], tuple(self.spawn.tolist())
        for goal in self.instruction[lane, : self.num_goals[lane]].tolist():
            to = (goal[0], goal[1])
            if to != at:
                legs.append(int(maze.distances(self.walls[lane], at)[to[1], to[0]]))
            else:
                # The same cell once more: bump into a wall beside it, or leave and return.
                walled = (self.depths[lane, at[1], at[0]] == 0).any()
                legs.append(1 if walled else 2)
            at = to
        return np.cumsum(legs)

    def render(self, lane: int) -> Array:
        """The maze from above: spawn, goals (paler once complete), the next one ringed, agent."""
        return self.draw(lane, np.ones((self.size, self.size), np.bool_))

    def eyes(self, lane: int) -> Eyes:
        return _DepthSensors(self, lane)

    def draw(self, lane: int, seen: Array) -> Array:
        """The same with fog over the cells [y, x] that were not seen."""
        cell = max(6, 300 // self.size)
        colours = np.where(self.walls[lane][..., None], draw.WALL, draw.FLOOR)
        cells = np.where(seen[..., None], colours, draw.FOG).astype(np.uint8)
        frame = draw.enlarged(cells, cell)

        def dot(at: Array, radius: float, colour: draw.Colour) -> None:
            draw.disc(frame, (at[1] + 0.5) * cell, (at[0] + 0.5) * cell, radius * cell, colour)

        dot(self.spawn, 0.45, draw.SHADE)
        asked, done = self.instruction[lane, : self.num_goals[lane]], self.progress[lane]
        for index, goal in enumerate(asked):
            if index == done:
                dot(goal, 0.5, draw.HINT)
            dot(goal, 0.4, draw.MARK if index < done else draw.GOAL)
        dot(self.position[lane], 0.28, draw.AGENT)
        return frame


class _DepthSensors:
    """Free cells as far as the four sensors reach, and the walls that end them; the goals are
    known from the instruction."""

    def __init__(self, task: MazeRunner, lane: int) -> None:
        self._task, self._lane = task, lane
        self._seen = np.zeros((task.size, task.size), np.bool_)

    def look(self) -> None:
        x, y = self._task.position[self._lane]
        self._seen[y, x] = True
        reach = self._task.depths[self._lane, y, x]
        for (right, down), depth in zip(maze.MOVES.tolist(), reach.tolist(), strict=True):
            for distance in range(1, depth + 2):  # the wall behind the last free cell, too
                self._seen[y + distance * down, x + distance * right] = True

    def frame(self) -> Array:
        return self._task.draw(self._lane, self._seen)


def _cardinal(action: Array) -> Array:
    """Vectors (x, y) [N, 2] as the direction of their larger component; x where they tie."""
    along_x = np.abs(action[:, 0]) >= np.abs(action[:, 1])
    return np.where(along_x, 2 * (action[:, 0] >= 0), 1 + 2 * (action[:, 1] >= 0))
