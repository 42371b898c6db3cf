"""Dark Key-To-Door: find a key, then a door, in the dark, again and again in one world."""

from __future__ import annotations

import numpy as np

from amago.envs.domain import Domain
from amago.envs.tasks import draw
from amago.envs.tasks.base import BestPlay, Eyes, Outcome, Task, check_at_least
from amago.presets.base import PAPER, RECIPE, Preset
from amago.presets.sizes import Size
from amago.types import BARE_KEY, Array

_MOVES = np.array([[-1, 0], [0, 1], [1, 0], [0, -1], [0, 0]])
"""Left, up, right, down, stay, as (x, y)."""


class DarkKeyToDoor(Task):
    """Trials in one grid whose start, key and door stay where they are.

    Key and door are looked for after every move, the key first: on a shared cell both
    rewards come in one step, and a start on the key is worth nothing until a step ends there
    (staying does). A trial ends at the door or at its limit, and the next begins at the start.
    """

    horizon_ends_rollout = True

    def __init__(self, grid: int = 9, trial_limit: int = 50, horizon: int = 500) -> None:
        from gymnasium import spaces

        check_at_least(1, grid=grid, trial_limit=trial_limit, horizon=horizon)
        self.grid = grid
        self.trial_limit = trial_limit
        self.horizon = horizon
        self.observation_space = spaces.Box(0.0, 1.0, (4,), np.float32)
        self.action_space = spaces.Discrete(len(_MOVES))

    def allocate(self, num_lanes: int) -> None:
        super().allocate(num_lanes)
        self.start, self.key, self.door, self.position = np.zeros((4, num_lanes, 2), np.int64)
        self.trial_time = np.zeros(num_lanes, np.int64)
        self.has_key, self.solved, self.opened = np.zeros((3, num_lanes), np.bool_)
        """`opened` is of the last step: a trial that ends begins again at once."""

    def worlds(self, world_seeds: Array) -> Array:
        """Start, key and door of the worlds of some seeds, [M, 3, 2]."""
        size = (3, 2)
        draws = [np.random.default_rng(int(s)).integers(0, self.grid, size) for s in world_seeds]
        return np.array(draws, np.int64).reshape(-1, *size)

    def best_play(self, world_seeds: Array) -> BestPlay:
        """Shortest paths, trial after trial."""
        return self.best_in(self.worlds(world_seeds))

    def best_in(self, worlds: Array) -> BestPlay:
        """The same for start, key and door of some worlds, [M, 3, 2]."""
        start, key, door = worlds.swapaxes(0, 1)
        # A key under the start still takes one step, since only steps earn rewards.
        to_key = np.maximum(np.abs(start - key).sum(axis=1), 1)[:, None]
        to_door = to_key + np.abs(key - door).sum(axis=1)[:, None]
        in_trial = np.arange(self.horizon) % np.minimum(to_door, self.trial_limit) + 1  # [M, H]
        reward = (in_trial == to_key) * 1.0 + (in_trial == to_door)
        solved = to_door[:, 0] <= min(self.trial_limit, self.horizon)
        return BestPlay(reward, np.full(len(reward), self.horizon), solved)

    def reset_lanes(self, lanes: Array, world_seeds: Array) -> None:
        worlds = self.worlds(world_seeds)
        self.start[lanes], self.key[lanes], self.door[lanes] = worlds.swapaxes(0, 1)
        self.position[lanes] = self.start[lanes]
        self.time[lanes] = self.trial_time[lanes] = 0
        self.has_key[lanes] = self.solved[lanes] = False

    def observe(self) -> dict[str, Array]:
        obs = np.empty((self.num_lanes, 4), np.float32)
        obs[:, :2] = self.position / self.grid
        obs[:, 2] = self.has_key
        obs[:, 3] = self.trial_time / self.trial_limit
        return {BARE_KEY: obs}

    def step(self, action: Array) -> Outcome:
        self.position = np.clip(self.position + _MOVES[action], 0, self.grid - 1)
        found = ~self.has_key & (self.position == self.key).all(axis=1)
        self.has_key |= found
        self.opened = opened = self.has_key & (self.position == self.door).all(axis=1)
        self.solved |= opened
        self.trial_time += 1
        self.time += 1
        terminated = self.time >= self.horizon
        first = (opened | (self.trial_time >= self.trial_limit)) & ~terminated
        self.position[first] = self.start[first]
        self.trial_time[first] = 0
        self.has_key[first] = False
        reward = found.astype(np.float32) + opened
        return reward, terminated, first, self.solved.copy()

    def render(self, lane: int) -> Array:
        """The grid with the key (until taken), the door, and the agent, ringed when it has it."""
        everywhere = np.ones((self.grid, self.grid), np.bool_)
        return self.draw(lane, everywhere, show_key=True, show_door=True)

    def eyes(self, lane: int) -> Eyes:
        return _InTheDark(self, lane)

    def draw(self, lane: int, seen: Array, *, show_key: bool, show_door: bool) -> Array:
        """The same with fog over the cells that were not seen [x, y]."""
        cell = max(8, 224 // self.grid)
        floor = np.where(seen.T[::-1, :, None], draw.FLOOR, draw.FOG).astype(np.uint8)
        frame = draw.enlarged(floor, cell)
        for edge in (0, cell - 1):
            frame[edge::cell] = frame[:, edge::cell] = draw.WALL

        def fill(at: Array, colour: draw.Colour, margin: int) -> None:
            top, left = (self.grid - 1 - at[1]) * cell, at[0] * cell
            draw.box(
                frame,
                top + margin,
                left + margin,
                top + cell - margin,
                left + cell - margin,
                colour,
            )

        if seen[tuple(self.start[lane])]:
            fill(self.start[lane], draw.SHADE, 1)
        if show_door:
            fill(self.door[lane], draw.GOAL, 2)
        if show_key and not self.has_key[lane]:
            fill(self.key[lane], draw.HINT, cell // 4)
        x, y = self.position[lane]
        at_y, at_x = (self.grid - 0.5 - y) * cell, (x + 0.5) * cell
        if self.has_key[lane]:
            draw.disc(frame, at_y, at_x, 0.42 * cell, draw.HINT)
        draw.disc(frame, at_y, at_x, 0.3 * cell, draw.AGENT)
        return frame


class _InTheDark:
    """The cells where the agent was; the key once it was taken, the door once it was opened."""

    def __init__(self, task: DarkKeyToDoor, lane: int) -> None:
        self._task, self._lane = task, lane
        self._seen = np.zeros((task.grid, task.grid), np.bool_)
        self._key_found = self._door_found = False
        self._had_key = bool(task.has_key[lane])

    def look(self) -> None:
        task, lane = self._task, self._lane
        opened, has_key = bool(task.opened[lane]) and task.time[lane] > 0, bool(task.has_key[lane])
        if (has_key or opened) and not self._had_key:
            self._key_found = True
            self._seen[tuple(task.key[lane])] = True
        if opened:
            self._door_found = True
            self._seen[tuple(task.door[lane])] = True
        self._seen[tuple(task.position[lane])] = True
        self._had_key = has_key

    def frame(self) -> Array:
        return self._task.draw(
            self._lane, self._seen, show_key=self._key_found, show_door=self._door_found
        )


_CPU = {
    "env.id": "amago/DarkKeyToDoor-v0",
    "env.kwargs": {"grid": 5, "trial_limit": 50, "horizon": 100},
}
_SIZE = Size(256, 3, 8, encoder=(128, 128, 64), heads=(256, 256))
_PAPER = {
    **_SIZE.settings(),
    "env.id": "amago/DarkKeyToDoor-v0",
    "env.kwargs": {"grid": 9, "trial_limit": 50, "horizon": 500},
    "agent.reward_scale": 100.0,
}

DOMAIN = Domain(
    make=DarkKeyToDoor,
    ids={"amago/DarkKeyToDoor-v0": {}},
    presets={
        "dark-key-to-door": Preset(
            "Dark Key-To-Door, 5×5, 100 steps: find the key and the door, then use what you know",
            RECIPE,
            _CPU,
        ),
        "dark-key-to-door/paper": Preset(
            "Dark Key-To-Door, 9×9, 500 steps, sizes of the paper's Tables 3 and 4", PAPER, _PAPER
        ),
    },
    paper_size=_SIZE,
    action_names=("left", "up", "right", "down", "stay"),
    picture="blue: agent, ringed once it has the key; yellow: key; green: door; grey: start",
    sees="x, y, has the key, time in the trial",
)
