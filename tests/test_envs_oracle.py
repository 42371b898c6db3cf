"""Perfect play against brute force, and as it is played."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from amago.envs.domains.dark_key_to_door import DarkKeyToDoor
from amago.envs.domains.maze_runner.task import MazeRunner
from amago.envs.domains.package_delivery import PackageDelivery
from amago.envs.domains.t_maze import TMaze
from amago.envs.domains.wind import Wind
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
    task = DarkKeyToDoor(grid, limit, horizon)
    worlds = task.worlds(np.arange(25))
    want = [best_return(grid, limit, horizon, world) for world in worlds]
    best = task.best_play(np.arange(25))
    assert best.reward.shape == (25, horizon) and best.reward.sum(axis=1).tolist() == want
    assert best.length.tolist() == [horizon] * 25
    steps = [max(abs(s - k).sum(), 1) + abs(k - d).sum() for s, k, d in worlds]
    assert best.success.tolist() == [count <= limit for count in steps]
    assert len(set(want)) > 2


def test_shortest_paths_played_in_the_task_earn_the_oracles_return_in_every_step():
    task = DarkKeyToDoor()
    vector = NativeVector(task, 40, seed=1)
    rows = vector.reset()
    want = task.best_play(rows.world_seed).reward
    earned = np.zeros((40, 500))
    for t in range(500):
        target = np.where(task.has_key[:, None], task.door, task.key)
        dx, dy = (target - task.position).T
        action = np.select([dx < 0, dx > 0, dy > 0, dy < 0], [0, 2, 1, 3], default=4)
        step = vector.step(action)
        earned[:, t] = (step.final or step.rows).prev_reward
    assert np.array_equal(earned, want)


def test_the_best_walk_through_a_t_maze_earns_its_reward_at_the_last_step():
    task = TMaze(corridor=7)
    vector = NativeVector(task, 12, seed=1)
    best = task.best_play(vector.reset().world_seed)
    goals = task.goal.copy()
    assert set(goals) == {-1, 1}
    for t in range(task.horizon):
        turn = np.where(goals > 0, 1, 3)
        step = vector.step(np.where(task.x == task.corridor, turn, 0))
        earned = (step.final or step.rows).prev_reward
        assert np.array_equal(earned, best.reward[:, t])


@pytest.mark.parametrize(
    "task", [PackageDelivery(road=14, horizon=14), MazeRunner(size=9, horizon=12)]
)
def test_perfect_play_of_an_instruction_is_one_reward_per_goal_that_fits(task):
    seeds = np.arange(30)
    best = task.best_play(seeds)
    assert task.num_lanes == 0, "the task itself is left as it was"
    task.allocate(30)
    task.reset_lanes(seeds, seeds)
    for lane, reward in enumerate(best.reward):
        steps = task.best_steps(lane)
        assert (np.flatnonzero(reward) + 1).tolist() == steps[steps <= task.horizon].tolist()
        assert best.success[lane] == (reward.sum() == task.num_goals[lane])
        assert best.length[lane] == min(steps[-1], task.horizon)
    assert 0 < best.success.sum() < 30


def test_nobody_knows_the_best_flight_through_wind():
    assert Wind().best_play(np.arange(3)) is None
