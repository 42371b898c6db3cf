"""Mazes: walls grown on a lattice, what sensors see in them, and shortest ways."""

from __future__ import annotations

import numpy as np

from amago.types import Array

MOVES = np.array([[-1, 0], [0, -1], [1, 0], [0, 1]])
"""Left, up, right, down as (x, y); y counts rows from the top."""
SMALLEST = 7


def spawn_cell(size: int) -> tuple[int, int]:
    """(x, y) of the tunnel's end, where every rollout begins."""
    return size // 2, size - 2


def grow(size: int, rng: np.random.Generator) -> Array:
    """Walls [size, size] (row, column) of a maze whose free cells are all connected.

    Walls grow as trees over the lattice of even cells: each lattice node joins at most one
    wall, so no wall closes a ring, alone or with the border. Then four rows at the bottom are
    cleared and two walls beside the middle make a tunnel with an open row above it.
    """
    walls = np.zeros((size, size), np.bool_)
    walls[[0, -1]] = walls[:, [0, -1]] = True
    side = size // 2 + 1
    free = {row * side + column for row in range(1, side - 1) for column in range(1, side - 1)}
    grown: list[tuple[int, int]] = []
    turns = iter(rng.random(2 * side * side).tolist())
    # Where trees begin: at the border, or as islands, which leave loops to walk around.
    for start in rng.permutation(side * side).tolist():
        node = start
        if node in free:
            free.discard(node)
            grown.append((node, node))
        while True:
            row, column = divmod(node, side)
            near = [
                other
                for other, inside in (
                    (node - side, row > 0),
                    (node + side, row < side - 1),
                    (node - 1, column > 0),
                    (node + 1, column < side - 1),
                )
                if inside and other in free
            ]
            if not near:
                break
            to = near[int(next(turns) * len(near))]
            free.discard(to)
            grown.append((node, to))
            node = to
    for begin, end in grown:
        (row, column), (to_row, to_column) = divmod(begin, side), divmod(end, side)
        walls[2 * to_row, 2 * to_column] = True
        walls[row + to_row, column + to_column] = True
    walls[size - 5 : size - 1, 1:-1] = False
    middle = size // 2
    walls[size - 4 : size - 1, [middle - 1, middle + 1]] = True
    return walls


def depths(walls: Array) -> Array:
    """Free cells between each cell and the next wall, left, up, right, down: [N, N, 4].

    Only meaningful on free cells.
    """
    size = len(walls)
    seen = np.zeros((4, size, size), np.int64)
    # Each direction as "from the left", then turned back.
    for turn in range(4):
        view, free = np.rot90(seen[turn], turn), ~np.rot90(walls, turn)
        for column in range(1, size):
            view[:, column] = (view[:, column - 1] + 1) * free[:, column - 1]
    return np.moveaxis(seen, 0, -1)


def distances(walls: Array, start: tuple[int, int]) -> Array:
    """Steps from a cell (x, y) to every cell [row, column] by breadth-first search; -1: no way."""
    steps = np.full(walls.shape, -1, np.int64)
    steps[start[1], start[0]] = 0
    queue = [start]
    for x, y in queue:
        for dx, dy in MOVES.tolist():
            to = (x + dx, y + dy)
            if not walls[to[1], to[0]] and steps[to[1], to[0]] < 0:
                steps[to[1], to[0]] = steps[y, x] + 1
                queue.append(to)
    return steps
