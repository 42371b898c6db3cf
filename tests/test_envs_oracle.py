"""The Dark Key-To-Door oracle against brute force."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from amago.envs.domains.dark_key_to_door import DarkKeyDoor
from amago.envs.tasks.oracle import oracle_rate, oracle_return_per_block
from amago.envs.vector import NativeVector

MOVES = [(-1, 0), (0, 1), (1, 0), (0, -1), (0, 0)]


def best_return(grid: int, limit: int, horizon: int, world: np.ndarray) -> int:
    """Dynamic programming over every state of a rollout."""
    start, key, door = (tuple(map(int, cell)) for cell in world)

    @cache
    def best(left: int, at: tuple[int, int], has_key: bool, t: int) -> int:
        if left == 0:
            return 0
        values = []
        for dx, dy in MOVES:
            to = (min(max(at[0] + dx, 0), grid - 1), min(max(at[1] + dy, 0), grid - 1))
            found = not has_key and to == key
            holds = has_key or found
            opened = holds and to == door
            over = opened or t + 1 == limit
            state = (start, False, 0) if over else (to, holds, t + 1)
            values.append(found + opened + best(left - 1, *state))
        return max(values)

    return best(horizon, start, False, 0)


@pytest.mark.parametrize(("grid", "limit", "horizon"), [(3, 50, 14), (3, 3, 13), (4, 5, 16)])
def test_the_oracle_earns_what_exhaustive_search_earns(grid, limit, horizon):
    task = DarkKeyDoor(grid, limit, horizon)
    worlds = task.worlds(np.arange(25))
    want = [best_return(grid, limit, horizon, world) for world in worlds]
    got = oracle_return_per_block(task, worlds)
    assert got.shape == (25, 10) and got.sum(axis=1).tolist() == want
    assert len(set(want)) > 2


def test_shortest_paths_played_in_the_task_earn_the_oracles_return_in_every_block():
    task = DarkKeyDoor()
    vector = NativeVector(task, 40, seed=1)
    rows = vector.reset()
    want = oracle_return_per_block(task, task.worlds(rows.world_seed))
    earned = np.zeros((40, 10))
    for t in range(500):
        target = np.where(task.has_key[:, None], task.door, task.key)
        dx, dy = (target - task.position).T
        action = np.select([dx < 0, dx > 0, dy > 0, dy < 0], [0, 2, 1, 3], default=4)
        step = vector.step(action)
        earned[:, t // 50] += (step.final or step.rows).prev_reward
    assert np.array_equal(earned, want)


def test_the_mean_rate_is_the_mean_over_worlds():
    task = DarkKeyDoor()
    seeds = task.worlds(np.arange(2000))
    assert oracle_rate(task) == pytest.approx(
        oracle_return_per_block(task, seeds).sum(axis=1).mean() / 500, rel=0.05
    )
