"""How the world of each domain can be changed under an agent, which is not told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from amago.envs.catalogue import full_id
from amago.envs.domains.maze_runner import maze
from amago.envs.eyes import first_lane_task
from amago.envs.in_process import InProcessVector
from amago.types import VectorEnv

_MAZES_TRIED = 500


@dataclass(frozen=True)
class Change:
    """What changes, in words and in deed."""

    text: str
    apply: Callable[[Any, np.random.Generator], None]
    """Changes lane 0 of a native task, or the environment of lane 0."""


def _new_key_and_door(task: Any, rng: np.random.Generator) -> None:
    before = (task.key[0].tolist(), task.door[0].tolist())
    while task.grid > 1 and (task.key[0].tolist(), task.door[0].tolist()) == before:
        task.key[0], task.door[0] = rng.integers(0, task.grid, (2, 2))


def _new_wind(task: Any, rng: np.random.Generator) -> None:
    largest = np.abs(task.wind).max() + 0.02
    task.wind[0] = rng.uniform(-largest, largest, 2)


def _other_side(task: Any, rng: np.random.Generator) -> None:
    task.goal[0] = -task.goal[0]


def _other_road(task: Any, rng: np.random.Generator) -> None:
    forks = task.side[0] > 0
    task.side[0, forks] = 3 - task.side[0, forks]  # left is 1, right is 2
    task.drop[0] = rng.choice([drop for drop in range(4, 8) if drop != task.drop[0]])


def _other_walls(task: Any, rng: np.random.Generator) -> None:
    """Another maze in which the agent and its goals stand on free cells."""
    goals = task.instruction[0, : task.num_goals[0]].astype(np.int64)
    stand = np.concatenate([task.position, goals])
    for _ in range(_MAZES_TRIED):
        walls = maze.grow(task.size, rng)
        if not walls[stand[:, 1], stand[:, 0]].any() and (walls != task.walls[0]).any():
            task.walls[0], task.depths[0] = walls, maze.depths(walls)
            return


def _other_cues(task: Any, rng: np.random.Generator) -> None:
    task.draw_world(0, rng)


def _other_speed(env: Any, rng: np.random.Generator) -> None:
    env.target = float(rng.uniform(0.0, 3.0))


_CUES = Change("other cues, also in place of one that was shown already", _other_cues)
_SIDE = Change("the goal on the other side", _other_side)
_CHANGES = {
    "amago/DarkKeyToDoor-v0": Change("new key and door, same room", _new_key_and_door),
    "amago/Wind-v0": Change("another wind", _new_wind),
    "amago/TMaze-v0": _SIDE,
    "amago/ActiveTMaze-v0": _SIDE,
    "amago/PackageDelivery-v0": Change("other sides at forks, another drop", _other_road),
    "amago/MazeRunner-v0": Change("other walls, same place and goals", _other_walls),
    "amago/BitRecall-v0": _CUES,
    "amago/MaskedRecall-v0": _CUES,
    "amago/PixelRecall-v0": _CUES,
    "amago/HalfCheetahVelocity-v0": Change("another target speed", _other_speed),
}
_WHY_NOT = {
    "amago/Crafter-v0": "its map is one piece, with everything that grows and lives in it",
    "amago/MetaWorldML1-v0": "its goal is part of the simulator's state, which only a reset draws",
}


def subject_of(lanes: VectorEnv) -> Any:
    """What a change changes: the native task behind lane 0, or its environment; None where lanes
    are out of reach."""
    task = first_lane_task(lanes)
    if task is None and isinstance(lanes, InProcessVector):
        return lanes.first_env.unwrapped
    return task


def change_of(env_id: str) -> Change | None:
    """How worlds of an environment can be changed; None where nobody has said how."""
    return _CHANGES.get(full_id(env_id))


def why_not(env_id: str) -> str:
    """Why the worlds of an environment cannot be changed."""
    name = full_id(env_id)
    return _WHY_NOT.get(name, f"amago does not know what could change in {name}")
