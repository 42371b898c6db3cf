"""T-Maze: a cue at the beginning decides the turn at the end of a corridor."""

from __future__ import annotations

import numpy as np

from amago.envs.domain import Domain
from amago.envs.tasks import draw
from amago.envs.tasks.base import BestPlay, Eyes, Outcome, Task, check_at_least
from amago.presets.base import PAPER, RECIPE, SMALL, Preset
from amago.presets.sizes import Size
from amago.types import BARE_KEY, Array

_DX = np.array([1, 0, -1, 0])
_DY = np.array([0, 1, 0, -1])


class TMaze(Task):
    """Corridor from x = 0 to the junction at x = `corridor`, with arms at y = ±1 there.

    Actions 0 +x, 1 +y, 2 -x, 3 -y. The best path takes every step of the rollout, so each
    deviation costs. Active: the cue lies at x = -1 and must be fetched. Either way it is
    shown at the first visit of its cell only.
    """

    def __init__(self, corridor: int = 100, active: bool = False) -> None:
        from gymnasium import spaces

        check_at_least(1, corridor=corridor)
        self.corridor = corridor
        self.active = active
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(4)
        self.horizon = corridor + (3 if active else 1)
        self._free_steps = 2 if active else 0
        self._cue_x = -1 if active else 0

    def best_play(self, world_seeds: Array) -> BestPlay:
        """Straight on, and the right turn at the last step."""
        reward = np.zeros((len(world_seeds), self.horizon))
        reward[:, -1] = 1.0
        return BestPlay.whole_horizon(reward)

    def allocate(self, num_lanes: int) -> None:
        super().allocate(num_lanes)
        self.x, self.y, self.goal = np.zeros((3, num_lanes), np.int64)
        self.cue_seen, self.cue_shown = np.zeros((2, num_lanes), np.bool_)

    def reset_lanes(self, lanes: Array, world_seeds: Array) -> None:
        self.goal[lanes] = [
            1 if np.random.default_rng(int(seed)).random() < 0.5 else -1 for seed in world_seeds
        ]
        self.time[lanes] = self.x[lanes] = self.y[lanes] = 0
        self.cue_seen[lanes] = self.cue_shown[lanes] = not self.active

    def observe(self) -> dict[str, Array]:
        at_junction = self.x == self.corridor
        shown = np.where(self.cue_shown, self.goal, np.where(at_junction, self.y, 0))
        return {BARE_KEY: np.stack([at_junction, shown], axis=1).astype(np.float32)}

    def step(self, action: Array) -> Outcome:
        # Arms are left the way they were entered: x moves need y = 0, y moves the junction.
        on_axis, at_junction = self.y == 0, self.x == self.corridor
        self.x = np.where(
            on_axis, np.clip(self.x + _DX[action], self._cue_x, self.corridor), self.x
        )
        self.y = np.where(at_junction, np.clip(self.y + _DY[action], -1, 1), self.y)
        self.cue_shown = (self.x == self._cue_x) & ~self.cue_seen
        self.cue_seen |= self.cue_shown
        penalised = (action != 0) & (self.time >= self._free_steps)
        self.time += 1
        terminated = self.time >= self.horizon
        success = terminated & (self.y == self.goal)
        reward = np.where(terminated, success, np.where(penalised, -1.0 / self.corridor, 0.0))
        first = np.zeros(self.num_lanes, np.bool_)
        return reward.astype(np.float32), terminated, first, success

    def render(self, lane: int) -> Array:
        """The 15 cells around the agent, under a bar with its place in the whole corridor."""
        return self.draw(lane, (self._cue_x, self.corridor), show_goal=True)

    def eyes(self, lane: int) -> Eyes:
        return _Walker(self, lane)

    def draw(self, lane: int, seen: tuple[int, int], *, show_goal: bool) -> Array:
        """The same with fog over the cells beyond the first and last x that were seen."""
        cell, reach = 32, 7
        x, y, goal = int(self.x[lane]), int(self.y[lane]), int(self.goal[lane])
        frame = draw.canvas(7 * cell, (2 * reach + 1) * cell, draw.WALL)

        def fill(at_x: int, at_y: int, colour: draw.Colour) -> None:
            top, left = (4 - at_y) * cell, (at_x - x + reach) * cell
            draw.box(frame, top + 1, left + 1, top + cell - 1, left + cell - 1, colour)

        for at_x in range(max(x - reach, self._cue_x), min(x + reach, self.corridor) + 1):
            floor = draw.FLOOR if at_x % 2 else draw.SHADE
            fill(at_x, 0, floor if seen[0] <= at_x <= seen[1] else draw.FOG)
        if self.corridor - x <= reach:
            for side in (-1, 1):
                arm = draw.FLOOR if seen[1] == self.corridor else draw.FOG
                fill(self.corridor, side, draw.GOAL if show_goal and side == goal else arm)
        if abs(self._cue_x - x) <= reach and seen[0] <= self._cue_x:
            fill(self._cue_x, 0, draw.HINT)
        draw.disc(frame, (4.5 - y) * cell, (reach + 0.5) * cell, 0.35 * cell, draw.AGENT)
        done = (x - self._cue_x + 1) / (self.corridor - self._cue_x + 1)
        draw.box(frame, cell, cell, 1.5 * cell, frame.shape[1] - cell, draw.MARK)
        draw.box(
            frame, cell, cell, 1.5 * cell, cell + done * (frame.shape[1] - 2 * cell), draw.AGENT
        )
        return frame


class _Walker:
    """The cells of the corridor that were walked; the goal's side once the cue was read."""

    def __init__(self, task: TMaze, lane: int) -> None:
        self._task, self._lane = task, lane
        self._seen = (int(task.x[lane]), int(task.x[lane]))
        self._knows = False

    def look(self) -> None:
        x = int(self._task.x[self._lane])
        self._seen = min(self._seen[0], x), max(self._seen[1], x)
        self._knows |= bool(self._task.cue_shown[self._lane])

    def frame(self) -> Array:
        return self._task.draw(self._lane, self._seen, show_goal=self._knows)


# The decision is one step of a hundred: noise falls on the first and the last steps, and it lasts
# until the cue is understood.
_NOISE = {"exploration.kind": "ends", "exploration.anneal_fraction": 0.9, "agent.greedy": True}
_CPU = {
    "env.id": "amago/TMaze-v0",
    "env.kwargs": {"corridor": 100},
    **_NOISE,
    "run.epochs": 40,
}
# A short corridor is walked many times while the longest is walked once, so batches are cheap,
# and what is learned there carries over: how to walk, and that the cue matters. A wrong step
# costs little where corridors are long, so values settle only as the learning rate falls.
_TEACHING = {
    "env.id": "amago/TMaze-v0",
    "env.ids": tuple(f"amago/TMaze-v0?corridor={length}" for length in (50, 100, 200, 400, 1000)),
    "env.num_lanes": 60,
    **_NOISE,
    "replay.capacity": 10_000,
    "encoder.normalize": False,
    "transformer.dropout": 0.05,
    "heads.probability_floor": 0.0,
    "heads.popart_rate": 0.005,
    # A wrong step costs at once, so short horizons suffice. Near γ = 1 nothing damps the values
    # when the critics discover the cue, and a few thousand updates do not settle them.
    "agent.discounts": (0.5, 0.7, 0.8, 0.9, 0.95, 0.98),
    "agent.acting_discount": 0.9,
    "agent.reward_scale": 100.0,
    "agent.target_tau": 0.01,
    "optim.final_fraction": 0.05,
    "run.epochs": 80,
    "run.eval_interval": 5,
}
_SIZE = Size(128, 2, 8, encoder=(128, 128, 128), heads=(256, 256))
_PAPER = {
    **_SIZE.settings(),
    "env.id": "amago/TMaze-v0",
    "env.kwargs": {"corridor": 1000},
    "exploration.kind": "ends",
    "encoder.normalize": False,
    "heads.probability_floor": 0.0,
    "agent.acting_discount": 0.9999,
    "agent.reward_scale": 100.0,
    "agent.greedy": True,
}

DOMAIN = Domain(
    make=TMaze,
    ids={"amago/TMaze-v0": {}, "amago/ActiveTMaze-v0": {"active": True}},
    presets={
        "t-maze": Preset(
            "Passive T-Maze, corridor 100: recall the first step at the last", RECIPE, _CPU
        ),
        "t-maze-1000": Preset(
            "Passive T-Maze, corridors of 50 to 1,000 in one run: the short ones teach the longest",
            SMALL,
            _TEACHING,
        ),
        "t-maze/paper": Preset(
            "Passive T-Maze, corridor 1000, sizes of the paper's Tables 3 and 4", PAPER, _PAPER
        ),
    },
    paper_size=_SIZE,
    action_names=("right", "up", "left", "down"),
    picture="blue: agent, and above it the way it has come; yellow: cue; green: the right end",
    sees="at the junction, the cue (only at its place)",
)
