"""Wind: hold a point in a small goal against a wind that must be inferred."""

from __future__ import annotations

import numpy as np

from amago.envs.domain import Domain
from amago.envs.tasks import draw
from amago.envs.tasks.base import Outcome, Task, check_at_least
from amago.presets.base import PAPER, RECIPE, Preset
from amago.presets.sizes import Size
from amago.types import BARE_KEY, Array

GOAL = np.array([0.0, 1.0])
_RADIUS = 0.03
_MAX_MOVE = 0.1
_MAX_WIND = 0.08


class Wind(Task):
    """A point from (0, 0); every step adds the action (±.1 per axis) and the world's wind."""

    def __init__(self, horizon: int = 75) -> None:
        from gymnasium import spaces

        check_at_least(1, horizon=horizon)
        self.horizon = horizon
        reach = horizon * (_MAX_MOVE + _MAX_WIND) + 1.0
        self.observation_space = spaces.Box(-reach, reach, (2,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def allocate(self, num_lanes: int) -> None:
        super().allocate(num_lanes)
        self.position, self.wind = np.zeros((2, num_lanes, 2))

    def reset_lanes(self, lanes: Array, world_seeds: Array) -> None:
        self.wind[lanes] = [
            np.random.default_rng(int(seed)).uniform(-_MAX_WIND, _MAX_WIND, 2)
            for seed in world_seeds
        ]
        self.position[lanes] = 0.0
        self.time[lanes] = 0

    def observe(self) -> dict[str, Array]:
        return {BARE_KEY: self.position.astype(np.float32)}

    def step(self, action: Array) -> Outcome:
        self.position = self.position + _MAX_MOVE * np.clip(action, -1.0, 1.0) + self.wind
        self.time += 1
        inside = ((self.position - GOAL) ** 2).sum(axis=1) <= _RADIUS**2
        first = np.zeros(self.num_lanes, np.bool_)
        return inside.astype(np.float32), self.time >= self.horizon, first, inside

    def render(self, lane: int) -> Array:
        """The square ±1.5 with start, goal (drawn larger than it is), agent and wind."""
        size, scale = 240, 80.0
        frame = draw.canvas(size, size, draw.FLOOR)

        def dot(at: Array, radius: float, colour: draw.Colour) -> None:
            draw.disc(frame, size / 2 - at[1] * scale, size / 2 + at[0] * scale, radius, colour)

        dot(np.zeros(2), 3, draw.MARK)
        dot(GOAL, 8, draw.GOAL)
        # Four steps of wind, as a tail that thickens the way it blows.
        for fraction in np.linspace(0.0, 4.0, 17):
            dot(np.array([-1.1, -1.1]) + self.wind[lane] * fraction, 1 + fraction / 2, draw.MARK)
        # A point that was blown away stays visible at the edge.
        dot(np.clip(self.position[lane], -1.45, 1.45), 5, draw.AGENT)
        return frame


# Random play is inside the goal once in a hundred rollouts: many lanes to find it. One such row
# outweighs a thousand others in the gradient, so the clip lets it through. Targets come from one
# critic: the minimum of two is a bias that bootstrapping piles up to more than the values
# themselves. With the recipe's clip and both critics nothing was learned within 1,500 updates.
_CPU = {
    **Size(32, 2, 2, encoder=(32, 32), heads=(64, 64)).settings(),
    "env.id": "amago/Wind-v0",
    "env.num_lanes": 1024,
    "rollout.steps_per_epoch": None,
    "replay.capacity": 40_000,
    "agent.target_critics": 1,
    "optim.grad_clip": 50.0,
    "run.updates_per_epoch": 100,
}
_SIZE = Size(128, 2, 8, encoder=(128, 128, 64), heads=(256, 256))

DOMAIN = Domain(
    make=Wind,
    ids={"amago/Wind-v0": {}},
    presets={
        "wind": Preset(
            "Wind: fly to a goal against a wind that only memory can feel", RECIPE, _CPU
        ),
        "wind/paper": Preset(
            "Wind, sizes of the paper's Tables 3 and 4",
            PAPER,
            {**_SIZE.settings(), "env.id": "amago/Wind-v0"},
        ),
    },
    paper_size=_SIZE,
    picture="blue: agent; green: goal; the grey tail: the wind, which it cannot see",
    sees="x, y",
)
