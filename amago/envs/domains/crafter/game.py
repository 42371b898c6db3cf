"""Crafter's game, made reproducible, and without the parts that only rendering needs."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import Any

import numpy as np

from amago.envs.domains.crafter.terrain import generate_world
from amago.envs.extras import need
from amago.types import Array

crafter = need("crafter", "crafter")
constants, engine, objects = crafter.constants, crafter.engine, crafter.objects

AREA = (64, 64)
_VIEW = (9, 9)
"""Cells of the picture; its last two rows show the inventory."""
LOCAL_VIEW = (9, 7)
_REACH = 2 * max(_VIEW) - 1
"""Creatures farther from the player than this stand still."""
ACTIONS: tuple[str, ...] = tuple(constants.actions)
ITEMS: tuple[str, ...] = tuple(constants.items)

TEXTURES = (
    "outside", *constants.materials, "player-left", "player-right", "player-up", "player-down",
    "player-sleep", "cow", "zombie", "skeleton", "arrow-left", "arrow-right", "arrow-up",
    "arrow-down", "plant", "plant-ripe", "fence",
)  # fmt: skip
"""What a cell of the view can show; the index is its id, equal to Crafter's for materials."""
_TEXTURE_IDS = {name: index for index, name in enumerate(TEXTURES)}


class _OrderedSet(dict[Any, None]):
    """A set that is iterated in the order of insertion."""

    def add(self, item: Any) -> None:
        self[item] = None

    def remove(self, item: Any) -> None:
        del self[item]


class _World(engine.World):  # type: ignore[misc]
    """Crafter keeps the creatures of a chunk in a set ordered by memory address, then draws."""

    def reset(self, seed: int | None = None) -> None:
        super().reset(seed)
        self._chunks: dict[Any, _OrderedSet] = defaultdict(_OrderedSet)


class Game(crafter.Env):  # type: ignore[misc]
    """One Crafter world. The same seed and actions give the same game, rendered or not."""

    def __init__(self) -> None:
        # Not the parent's: it would read every texture from disk, for each lane.
        self._area, self._view, self._size = AREA, np.array(_VIEW), np.array((64, 64))
        self._world = _World(AREA, constants.materials, (12, 12))
        self._local_view = engine.LocalView(self._world, _textures(), LOCAL_VIEW)
        self._item_view = engine.ItemView(_textures(), [_VIEW[0], _VIEW[1] - LOCAL_VIEW[1]])

    @property
    def player(self) -> Any:
        return self._player

    @property
    def world(self) -> Any:
        return self._world

    def begin(self, seed: int) -> None:
        """Enter the world of a seed."""
        self._step = 0
        self._world.reset(seed=seed)
        self._update_time()
        self._player = objects.Player(self._world, (AREA[0] // 2, AREA[1] // 2))
        self._last_health = self._player.health
        self._world.add(self._player)
        self._unlocked: set[str] = set()
        generate_world(self._world, self._player)

    def advance(self, action: int) -> float:
        """One step; Crafter's own reward: health, and 1 when something is achieved first."""
        self._step += 1
        self._update_time()
        player = self._player
        player.action = ACTIONS[action]
        self._update_objects()
        if self._step % 10 == 0:
            for chunk, members in self._world.chunks.items():
                self._balance_chunk(chunk, members)
        reward = (player.health - self._last_health) / 10
        self._last_health = player.health
        unlocked = {name for name, count in player.achievements.items() if count}
        if len(unlocked) > len(self._unlocked):
            self._unlocked = unlocked
            reward += 1.0
        return float(reward)

    def _update_objects(self) -> None:
        """Let the player act, then all that was there before and is not too far away.

        In the order in which they came into the world, as in Crafter, which measures the
        distance to each of a hundred; nothing but the player can change who is near.
        """
        items = self._world._objects
        count = len(items)
        assert items[1] is self._player
        self._player.update()
        x, y = (int(value) for value in self._player.pos)
        x0, y0 = max(x - _REACH, 0), max(y - _REACH, 0)
        patch = self._world._obj_map[x0 : x + _REACH + 1, y0 : y + _REACH + 1]
        xs, ys = np.nonzero(patch)
        indices = patch[xs, ys]
        near = indices[np.abs(xs + (x0 - x)) + np.abs(ys + (y0 - y)) <= _REACH]
        for index in np.sort(near).tolist():
            if 1 < index < count and items[index] is not None:
                items[index].update()

    @property
    def dead(self) -> bool:
        return bool(self._player.health <= 0)

    def textures(self) -> Array:
        """Ids [9, 7] of what the local view shows, x first; 0 outside the map."""
        view = np.zeros(LOCAL_VIEW, np.uint8)
        x, y = (int(value) for value in self._player.pos)
        left, top = x - LOCAL_VIEW[0] // 2, y - LOCAL_VIEW[1] // 2
        x0, y0 = max(left, 0), max(top, 0)
        x1, y1 = min(left + LOCAL_VIEW[0], AREA[0]), min(top + LOCAL_VIEW[1], AREA[1])
        inside = view[x0 - left : x1 - left, y0 - top : y1 - top]
        inside[:] = self._world._mat_map[x0:x1, y0:y1]
        present = self._world._obj_map[x0:x1, y0:y1]
        for at in zip(*np.nonzero(present), strict=True):
            inside[at] = _TEXTURE_IDS[self._world._objects[present[at]].texture]
        return view

    def picture(self, size: tuple[int, int]) -> Array:
        """The game as Crafter draws it; noise at night leaves the world's randomness alone."""
        random = self._world.random
        state = random.get_state()
        frame: Array = self.render(size)
        random.set_state(state)
        return frame

    def materials_within(self, distance: int) -> set[str]:
        """What the ground is made of within so many steps of the player."""
        x, y = (int(value) for value in self._player.pos)
        x0, y0 = max(x - distance, 0), max(y - distance, 0)
        patch = self._world._mat_map[x0 : x + distance + 1, y0 : y + distance + 1]
        steps = np.abs(np.arange(x0, x0 + patch.shape[0]) - x)[:, None] + np.abs(
            np.arange(y0, y0 + patch.shape[1]) - y
        )
        return {TEXTURES[index] for index in patch[steps <= distance]}


@lru_cache(maxsize=1)
def _textures() -> Any:
    """One copy for all lanes of a process."""
    return engine.Textures(constants.root / "assets")
