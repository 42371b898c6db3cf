"""Crafter's own world generator, a whole map at a time.

Noise is computed in compiled loops over the grid instead of cell by cell, and the decisions draw
the same random numbers in the same order as `crafter.worldgen`, so a seed means the same world.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from amago.envs.extras import need
from amago.types import Array

numba = need("numba", "crafter")
opensimplex = need("opensimplex", "crafter")
objects = need("crafter.objects", "crafter")
_noise3 = need("opensimplex.internals", "crafter")._noise3


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _noise_grid(xs: Array, ys: Array, z: float, perm: Array, gradients: Array) -> Array:
    grid = np.empty((xs.size, ys.size))
    for i in range(xs.size):
        for j in range(ys.size):
            grid[i, j] = _noise3(xs[i], ys[j], z, perm, gradients)
    return grid


class _Noise:
    """Simplex noise over a grid of cells."""

    def __init__(self, seed: int, area: tuple[int, int]) -> None:
        simplex = opensimplex.OpenSimplex(seed=seed)
        self._tables = simplex._perm, simplex._perm_grad_index3
        self.x, self.y = np.arange(area[0], dtype=np.float64), np.arange(area[1], dtype=np.float64)

    def __call__(
        self, z: int, *sizes: tuple[float, float], x: Array | None = None, y: Array | None = None
    ) -> Array:
        """The weighted sum over (size, weight), on the grid or on other coordinates."""
        xs, ys = self.x if x is None else x, self.y if y is None else y
        parts = [
            weight * _noise_grid(xs / size, ys / size, float(z), *self._tables)
            for size, weight in sizes
        ]
        total: Array = sum(parts[1:], 0.0 + parts[0])
        return total


def generate_world(world: Any, player: Any) -> None:
    """Fill a fresh world with materials and creatures."""
    noise = _Noise(world.random.randint(0, 2**31 - 1), world.area)
    away_x, away_y = noise.x[:, None] - player.pos[0], noise.y[None] - player.pos[1]
    distance = np.sqrt(away_x**2 + away_y**2)
    draws = _Draws(world.random, 6 * distance.size)
    tunnels = _set_materials(world, noise, distance, draws)
    _set_objects(world, player, tunnels, distance, draws)
    draws.close()


class _Draws:
    """Uniform numbers drawn ahead, from a generator that in the end has drawn only those used."""

    def __init__(self, random: np.random.RandomState, count: int) -> None:
        self._random, self._state = random, random.get_state()
        self._values = random.random_sample(count).tolist()
        self._used = 0

    def above(self, threshold: float) -> bool:
        value = self._values[self._used]
        self._used += 1
        return bool(value > threshold)

    def close(self) -> None:
        self._random.set_state(self._state)
        self._random.random_sample(self._used)


def _set_materials(world: Any, noise: _Noise, distance: Array, draws: _Draws) -> Array:
    """Write the map of materials; returns where tunnels are."""
    start: Array = 4 - distance + 2 * noise(8, (3, 1.0))
    start = 1 / (1 + np.exp(-start))
    water = noise(3, (15, 1.0), (5, 0.15)) + 0.1 - 2 * start
    mountain = noise(0, (15, 1.0), (5, 0.3)) / 1.3 - (4 * start + 0.3 * water)
    caves = (noise(6, (7, 1.0)) > 0.15) & (mountain > 0.3)
    horizontal = noise(7, (3, 1.0), x=2 * noise.x, y=noise.y / 5) > 0.4
    vertical = noise(7, (3, 1.0), x=noise.x / 5, y=2 * noise.y) > 0.4
    rock = (start <= 0.5) & (mountain > 0.15)
    low = (start <= 0.5) & ~rock
    tunnels: Array = rock & ~caves & (horizontal | vertical)
    sand = low & (water > 0.25) & (water <= 0.35) & (noise(4, (9, 1.0)) > -0.2)
    lake = low & ~sand & (water > 0.3)
    lava = (mountain > 0.3) & (noise(6, (5, 1.0)) > 0.35)

    ids = world._mat_ids
    world._mat_map[:] = ids["grass"]
    for mask, material in (
        (rock, "stone"),
        (rock & lava, "lava"),
        (rock & (caves | tunnels), "path"),
        (sand, "sand"),
        (lake, "water"),
    ):
        world._mat_map[mask] = ids[material]
    _set_rare(
        world,
        draws,
        rock & ~caves & ~tunnels,
        low & ~sand & ~lake & (noise(5, (7, 1.0)) > 0),
        noise(1, (8, 1.0)) > 0,
        noise(2, (6, 1.0)) > 0.4,
        mountain > 0.18,
    )
    return tunnels


def _set_rare(
    world: Any, draws: _Draws, ore: Array, forest: Array, coal: Array, iron: Array, deep: Array
) -> None:
    """Ores in the rock and trees in the forest: the cells that chance decides, in order."""
    ids = world._mat_ids
    candidates = zip(
        *np.nonzero(ore | forest),
        *(mask[ore | forest].tolist() for mask in (ore, coal, iron, deep)),
        strict=True,
    )
    for x, y, is_ore, may_coal, may_iron, may_diamond in candidates:
        material = None
        if not is_ore:
            material = "tree" if draws.above(0.8) else None
        elif may_coal and draws.above(0.85):
            material = "coal"
        elif may_iron and draws.above(0.75):
            material = "iron"
        elif may_diamond and draws.above(0.994):
            material = "diamond"
        if material is not None:
            world._mat_map[x, y] = ids[material]


def _set_objects(world: Any, player: Any, tunnels: Array, distance: Array, draws: _Draws) -> None:
    ids = world._mat_ids
    grass, sand, path = (world._mat_map == ids[name] for name in ("grass", "sand", "path"))
    walkable = grass | sand | path
    candidates = zip(
        *(axis.tolist() for axis in np.nonzero(walkable)),
        *(
            mask[walkable].tolist()
            for mask in (grass & (distance > 3), distance > 10, path & tunnels)
        ),
        strict=True,
    )
    for x, y, may_cow, may_zombie, may_skeleton in candidates:
        if may_cow and draws.above(0.985):
            world.add(objects.Cow(world, (x, y)))
        elif may_zombie and draws.above(0.993):
            world.add(objects.Zombie(world, (x, y), player))
        elif may_skeleton and draws.above(0.95):
            world.add(objects.Skeleton(world, (x, y), player))
