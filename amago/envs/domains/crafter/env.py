"""Crafter as a Gymnasium environment that asks for goals and sees every one achieved."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
import numpy as np

from amago.envs.domains.crafter.game import ACTIONS, AREA, ITEMS, LOCAL_VIEW, TEXTURES, Game
from amago.envs.domains.crafter.goals import REACH, achieved_goals
from amago.envs.domains.crafter.instructions import (
    MAX_GOALS,
    draw_instruction,
    draw_tech_tree,
    tech_tree,
)
from amago.envs.domains.crafter.spec import goal_spec
from amago.types import Array

_PIXELS = (64, 64)
_FRAME = (450, 450)
"""Size of what `render` shows."""


class Crafter(gym.Env[Any, Any]):
    """Crafter with instructions, or undirected, for the game's own reward.

    Instructions are drawn from the `random` distribution, from the `tech-tree` half of the time
    (what Expanded does unless told otherwise), or not at all, `none`. Their rewards are
    amago.envs.instructions.FollowInstructions' business, which lanes add by themselves; here
    all goals that a step achieved are in info["achieved"]. The tech-tree is asked for up to the
    `curriculum` that was last assigned; read, it says how far this environment has come.

    Observes `textures`, the 9×7 view as ids and a vector of inventory/10, facing, daylight and
    position/64, or `pixels`. The horizon is part of the task: meeting it terminates. The same
    seed gives the same world, whether or not it is rendered.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 12}  # noqa: RUF012

    def __init__(
        self,
        observation: Literal["textures", "pixels"] = "textures",
        instructions: Literal["random", "tech-tree", "none"] | None = None,
        expanded: bool = False,
        horizon: int = 2000,
        max_goals: int = MAX_GOALS,
        render_mode: str | None = None,
    ) -> None:
        if observation not in ("textures", "pixels"):
            raise ValueError(f"expected observation textures or pixels, got {observation!r}")
        if instructions is None:
            instructions = "tech-tree" if expanded else "random"
        if instructions not in ("random", "tech-tree", "none"):
            raise ValueError(
                f"expected instructions random, tech-tree or none, got {instructions!r}"
            )
        if horizon < 1:
            raise ValueError(f"expected horizon to be at least 1, got {horizon}")
        self.max_goals = max_goals
        self.observation = observation
        self.horizon = horizon
        self.instructions = instructions
        self.expanded = expanded
        if instructions != "none":
            self.goals = goal_spec(expanded, max_goals)
        self.curriculum = -1
        self.render_mode = render_mode
        self.game = Game()
        self.action_space = gym.spaces.Discrete(len(ACTIONS))
        self.observation_space = _space(observation)
        self._time = 0

    @property
    def curriculum(self) -> int:
        """The most advanced goal of the tech-tree that was achieved here or assigned; -1: none."""
        return self._reached

    @curriculum.setter
    def curriculum(self, level: int) -> None:
        self._frontier = self._reached = level

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        world_seed = int(self.np_random.integers(2**32)) if seed is None else seed % 2**32
        self.game.begin(world_seed)
        self._time = 0
        return self._observe(), self._asked(np.random.default_rng(world_seed))

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
        if self.instructions == "tech-tree":
            self._advance(achieved)
        over = self.game.dead or self._time >= self.horizon
        return self._observe(), reward, over, False, {"achieved": achieved}

    def render(self) -> Array | None:
        return self.game.picture(_FRAME) if self.render_mode == "rgb_array" else None

    def _asked(self, generator: np.random.Generator) -> dict[str, Any]:
        if self.instructions == "none":
            return {}
        if self.instructions == "tech-tree":
            drawn = draw_tech_tree(
                generator, self._frontier, expanded=self.expanded, max_goals=self.max_goals
            )
            return {"instruction": drawn}
        return {"instruction": draw_instruction(generator, self.max_goals)}

    def _advance(self, achieved: Array) -> None:
        tree = tech_tree(self.expanded)
        steps = [tree.index(tokens) for tokens in map(tuple, achieved.tolist()) if tokens in tree]
        self._reached = max(self._reached, *steps, -1)

    def _observe(self) -> Any:
        if self.observation == "pixels":
            return self.game.picture(_PIXELS)
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
        return gym.spaces.Box(0, 255, (*_PIXELS, 3), np.uint8)
    low = np.zeros(len(ITEMS) + 5, np.float32)
    low[-5:-3] = -1.0
    return gym.spaces.Dict(
        {
            "view": gym.spaces.MultiDiscrete(np.full(LOCAL_VIEW, len(TEXTURES)), dtype=np.uint8),
            "state": gym.spaces.Box(low, np.ones_like(low), dtype=np.float32),
        }
    )
