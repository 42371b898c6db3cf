"""Crafter as a Gymnasium environment that reports every goal it sees achieved."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
import numpy as np

from amago.envs.suites.crafter.game import ACTIONS, AREA, ITEMS, LOCAL_VIEW, TEXTURES, Game
from amago.envs.suites.crafter.goals import REACH, achieved_goals
from amago.types import Array

PIXELS = (64, 64)
FRAME = (450, 450)
"""Size of what `render` shows."""


class Crafter(gym.Env[Any, Any]):
    """Undirected Crafter: the game's own reward; all goals of a step are in info["achieved"].

    Observes `textures`, the 9×7 view as ids and a vector of inventory/10, facing, daylight and
    position/64, or `pixels`. The horizon is part of the task: meeting it terminates. The same
    seed gives the same world, whether or not it is rendered.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 12}  # noqa: RUF012

    def __init__(
        self,
        observation: Literal["textures", "pixels"] = "textures",
        horizon: int = 2000,
        expanded: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if observation not in ("textures", "pixels"):
            raise ValueError(f"expected observation textures or pixels, got {observation!r}")
        if horizon < 1:
            raise ValueError(f"expected horizon to be at least 1, got {horizon}")
        self.observation = observation
        self.horizon = horizon
        self.expanded = expanded
        self.render_mode = render_mode
        self.game = Game()
        self.action_space = gym.spaces.Discrete(len(ACTIONS))
        self.observation_space = _space(observation)
        self._time = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.game.begin(int(self.np_random.integers(2**32)) if seed is None else seed % 2**32)
        self._time = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        player = self.game.player
        before = player.achievements.copy()
        reward = self.game.advance(int(action))
        self._time += 1
        achieved = achieved_goals(
            before,
            player.achievements,
            (int(player.pos[0]), int(player.pos[1])),
            player.facing,
            self.game.materials_within(REACH) if self.expanded else None,
        )
        over = self.game.dead or self._time >= self.horizon
        return self._observe(), reward, over, False, {"achieved": achieved}

    def render(self) -> Array | None:
        return self.game.picture(FRAME) if self.render_mode == "rgb_array" else None

    def _observe(self) -> Any:
        if self.observation == "pixels":
            return self.game.picture(PIXELS)
        player = self.game.player
        vector = np.empty(len(ITEMS) + 5, np.float32)
        vector[: len(ITEMS)] = [player.inventory[name] / 10 for name in ITEMS]
        vector[-5:-3] = player.facing
        vector[-3] = self.game.world.daylight
        vector[-2:] = player.pos
        vector[-2:] /= AREA
        return {"view": self.game.textures(), "state": vector}


def _space(observation: str) -> gym.Space[Any]:
    if observation == "pixels":
        return gym.spaces.Box(0, 255, (*PIXELS, 3), np.uint8)
    low = np.zeros(len(ITEMS) + 5, np.float32)
    low[-5:-3] = -1.0
    return gym.spaces.Dict(
        {
            "view": gym.spaces.MultiDiscrete(np.full(LOCAL_VIEW, len(TEXTURES)), dtype=np.uint8),
            "state": gym.spaces.Box(low, np.ones_like(low), dtype=np.float32),
        }
    )
