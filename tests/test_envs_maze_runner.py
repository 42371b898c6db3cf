"""Mazes, what is seen and done in them, and the shortest ways."""

from __future__ import annotations

from collections import deque

import gymnasium as gym
import numpy as np
import pytest

from amago.envs.domains.maze_runner import maze
from amago.envs.domains.maze_runner.task import MazeRunner, _cardinal
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings

DIRECTIONS = [(-1, 0), (0, -1), (1, 0), (0, 1)]


def flood(walls: np.ndarray, start: tuple[int, int]) -> dict[tuple[int, int], int]:
    """Steps from (x, y) to every cell that can be reached."""
    steps, queue = {start: 0}, deque([start])
    while queue:
        x, y = queue.popleft()
        for dx, dy in DIRECTIONS:
            to = (x + dx, y + dy)
            if not walls[to[1]][to[0]] and to not in steps:
                steps[to] = steps[(x, y)] + 1
                queue.append(to)
    return steps


@pytest.mark.parametrize("size", [7, 9, 11, 13, 15, 31])
def test_all_free_cells_of_every_maze_are_connected(size):
    mazes = [maze.grow(size, np.random.default_rng(seed)) for seed in range(150)]
    spawn = maze.spawn_cell(size)
    for walls in mazes:
        assert walls[[0, -1]].all() and walls[:, [0, -1]].all()
        assert len(flood(walls, spawn)) == (~walls).sum()
    assert len({walls.tobytes() for walls in mazes}) > {7: 0, 9: 40}.get(size, 120)


@pytest.mark.parametrize("size", [9, 15, 31])
def test_the_bottom_is_a_tunnel_with_open_space_and_an_open_row_above(size):
    middle = size // 2
    for seed in range(20):
        walls = maze.grow(size, np.random.default_rng(seed))
        assert not walls[size - 5, 1:-1].any()
        expected = np.zeros(size, bool)
        expected[[0, middle - 1, middle + 1, -1]] = True
        assert (walls[size - 4 : size - 1] == expected).all()
        assert maze.spawn_cell(size) == (middle, size - 2)
        # Above it, walls stand on the even lattice: no odd cell is one, every even cell is.
        assert not walls[1 : size - 5 : 2, 1::2].any() and walls[0 : size - 5 : 2, ::2].all()


def test_sensors_and_distances_are_what_walking_finds():
    for seed in range(15):
        walls = maze.grow(11, np.random.default_rng(seed))
        depths, distances = maze.depths(walls), maze.distances(walls, (5, 9))
        reached = flood(walls, (5, 9))
        for y, x in np.argwhere(~walls).tolist():
            assert distances[y, x] == reached[(x, y)]
            for index, (dx, dy) in enumerate(DIRECTIONS):
                free, at = 0, (x + dx, y + dy)
                while not walls[at[1], at[0]]:
                    free, at = free + 1, (at[0] + dx, at[1] + dy)
                assert depths[y, x, index] == free
        assert (distances[walls] == -1).all()


def test_worlds_depend_on_seed_lane_and_rollout_alone():
    def worlds(lanes: int, workers: int = 0, seed: int = 4) -> np.ndarray:
        settings = EnvSettings(
            id="amago/MazeRunner-v0", kwargs={"size": 9, "horizon": 3}, num_workers=workers
        )
        vector = make_vector(settings, seed=seed, num_lanes=lanes)
        action = np.zeros(lanes, np.int64)
        rows = [vector.reset(), *(vector.step(action).rows for _ in range(7))]
        vector.close()
        kept = [
            np.concatenate([r.instruction.reshape(lanes, -1), r.obs["observation"]], 1)
            for r in rows
        ]
        return np.stack(kept)

    six = worlds(6)
    assert np.array_equal(six, worlds(6)) and np.array_equal(six[:, :4], worlds(4))
    assert np.array_equal(six, worlds(6, workers=2)) and not np.array_equal(six, worlds(6, seed=5))
    assert len(np.unique(six[0, :, :6], axis=0)) == 6  # lanes differ
    assert not np.array_equal(six[0, :, :6], six[3, :, :6])  # and rollouts of one lane


def test_walls_depend_on_seed_lane_and_rollout_alone():
    def walls(lanes: int, seed: int = 4) -> np.ndarray:
        settings = EnvSettings(id="amago/MazeRunner-v0", kwargs={"size": 15, "horizon": 1})
        vector = make_vector(settings, seed=seed, num_lanes=lanes)
        vector.reset()
        grown = [vector.task.walls.copy()]
        for _ in range(3):
            vector.step(np.zeros(lanes, np.int64))
            grown.append(vector.task.walls.copy())
        return np.stack(grown)

    six, other = walls(6), walls(6, seed=5)
    assert np.array_equal(six, walls(6)) and np.array_equal(six[:, :4], walls(4))
    both = np.concatenate([six, other]).reshape(-1, 15 * 15)
    assert len(both) == 48 and len(np.unique(both, axis=0)) == 48


def test_every_step_is_that_of_a_walk_in_plain_words():
    settings = EnvSettings(
        id="amago/MazeRunner-v0", kwargs={"size": 11, "horizon": 60, "rewired": True}
    )
    vector = make_vector(settings, seed=1, num_lanes=30)
    vector.reset()
    task, rng = vector.task, np.random.default_rng(0)
    spawn, returns = (5, 9), 0
    position = [spawn] * 30
    progress = [0] * 30
    for _ in range(59):
        action = rng.integers(0, 4, 30)
        rows = vector.step(action)
        for lane in range(30):
            walls = task.walls[lane]
            if lane in rows.final_lanes:
                position[lane], progress[lane] = spawn, 0
                continue
            dx, dy = DIRECTIONS[task.directions[lane][action[lane]]]
            to = (position[lane][0] + dx, position[lane][1] + dy)
            position[lane] = position[lane] if walls[to[1], to[0]] else to
            x, y = position[lane]
            offsets, goals = rows.rows.achieved
            achieved = [tuple(g) for g in goals[offsets[lane] : offsets[lane + 1]].tolist()]
            assert achieved == ([] if (x, y) == spawn else [(x, y)])
            returns += (x, y) == spawn
            wanted = tuple(task.instruction[lane, progress[lane]].tolist())
            gained = (x, y) == wanted and progress[lane] < task.num_goals[lane]
            progress[lane] += gained
            assert rows.rows.prev_reward[lane] == gained
            assert rows.rows.progress[lane] == progress[lane]
            seen = rows.rows.obs["observation"][lane]
            want = [*maze.depths(walls)[y, x], x, y]
            assert seen == pytest.approx(np.array(want) / 11)
    assert returns > 10
    assert len(np.unique(task.directions, axis=0)) > 10
    assert (np.sort(task.directions) == np.arange(4)).all()


def test_continuous_actions_go_along_their_larger_component():
    actions = np.array([[-0.5, 0.4], [0.1, -0.9], [0.3, 0.2], [-0.1, 0.2], [0.5, 0.5], [0, 0]])
    assert _cardinal(actions).tolist() == [0, 1, 2, 3, 2, 2]
    smooth = gym.make("amago/MazeRunner-v0", continuous=True, position=False)
    discrete = gym.make("amago/MazeRunner-v0")
    assert smooth.observation_space.shape == (4,) and discrete.observation_space.shape == (6,)
    views = [env.reset(seed=2)[0] for env in (smooth, discrete)]
    vectors = {0: [-1.0, 0.2], 1: [0.3, -0.7], 2: [0.9, 0.0], 3: [0.0, 1.0]}
    for action in np.random.default_rng(0).integers(0, 4, 200).tolist():
        assert np.array_equal(views[0], views[1][:4])
        a = smooth.step(np.array(vectors[action], np.float32))
        b = discrete.step(action)
        assert a[1:4] == b[1:4]
        views = [a[0], b[0]]


@pytest.mark.parametrize(("size", "lanes"), [(9, 60), (15, 60), (31, 5)])
def test_the_oracle_solves_every_maze_in_the_steps_it_says(size, lanes):
    task = MazeRunner(size, rewired=True)
    task.allocate(lanes)
    task.reset_lanes(np.arange(lanes), np.arange(lanes))
    best = [task.best_steps(lane).tolist() for lane in range(lanes)]
    away = [
        [flood(walls, tuple(goal)) for goal in asked.tolist()[:count]]
        for walls, asked, count in zip(task.walls, task.instruction, task.num_goals, strict=True)
    ]
    done: list[list[int]] = [[] for _ in range(lanes)]
    for time in range(1, 1 + max(steps[-1] for steps in best)):
        action = np.zeros(lanes, np.int64)
        for lane in range(lanes):
            steps = away[lane][min(task.progress[lane], task.num_goals[lane] - 1)]
            x, y = task.position[lane].tolist()
            near = [steps.get((x + dx, y + dy), np.inf) for dx, dy in DIRECTIONS]
            action[lane] = task.directions[lane].tolist().index(int(np.argmin(near)))
        reward, *_ = task.step(action)
        for lane in np.flatnonzero(reward).tolist():
            done[lane].append(time)
    assert done == best


def test_no_shorter_way_exists_also_where_goals_repeat():
    task = MazeRunner(9)
    task.allocate(20)
    task.reset_lanes(np.arange(20), np.arange(20))
    rng = np.random.default_rng(1)
    bumps = set()
    for lane in range(20):
        cells = rng.permutation(task.achievable(lane))[:2]
        task.instruct(lane, np.stack([cells[0], cells[0], cells[1]]))
        walls, asked = task.walls[lane], [tuple(c) for c in task.instruction[lane].tolist()]
        # Search over (cell, goals complete), where a blocked move is a step that stays.
        start = ((4, 7), 0)
        steps, queue = {start: 0}, deque([start])
        while queue:
            (x, y), done = state = queue.popleft()
            for dx, dy in DIRECTIONS:
                to = (x, y) if walls[y + dy, x + dx] else (x + dx, y + dy)
                after = (to, done + (done < 3 and asked[done] == to))
                if after not in steps:
                    steps[after] = steps[state] + 1
                    queue.append(after)
        want = [min(s for (_, done), s in steps.items() if done == n) for n in (1, 2, 3)]
        assert task.best_steps(lane).tolist() == want
        bumps.add(want[1] - want[0])
    assert bumps <= {1, 2}


def test_goals_are_free_cells_but_never_the_spawn_cell():
    task = MazeRunner(9)
    task.allocate(300)
    task.reset_lanes(np.arange(300), np.arange(300))
    assert {*task.num_goals.tolist()} == {1, 2, 3}
    for lane in range(300):
        asked = [tuple(goal) for goal in task.instruction[lane, : task.num_goals[lane]].tolist()]
        assert len({*asked}) == len(asked) and (4, 7) not in asked
        assert not any(task.walls[lane, y, x] for x, y in asked)
    env = gym.make("amago/MazeRunner-v0", size=9)
    env.reset(seed=0)
    for bad, message in (("(4, 7)", r"got \(4, 7\)"), ("(0, 3)", "whole numbers in")):
        with pytest.raises(ValueError, match=message):
            env.reset(seed=0, options={"instruction": bad})


def test_instructions_have_as_many_places_as_asked_for():
    def lengths(**arguments: int) -> set[int]:
        task = MazeRunner(9, **arguments)
        task.allocate(40)
        task.reset_lanes(np.arange(40), np.arange(40))
        return set(task.num_goals.tolist())

    assert lengths() == {1, 2, 3} and lengths(min_goals=3) == {3}
    assert lengths(min_goals=2, max_goals=4) == {2, 3, 4}
    with pytest.raises(ValueError, match="max_goals to be at least 3, got 2"):
        MazeRunner(9, min_goals=3, max_goals=2)


def test_sizes_and_horizons_are_those_of_the_paper():
    assert (MazeRunner().size, MazeRunner().horizon) == (15, 400)
    assert MazeRunner(31).horizon == 1000 and MazeRunner(11, horizon=77).horizon == 77
    assert (
        make_vector(
            EnvSettings(id="amago/MazeRunner-v0", horizon=33), seed=0, num_lanes=1
        ).spec.horizon
        == 33
    )
    for bad, message in (({"size": 30}, "use 31"), ({"size": 5}, "at least 7")):
        with pytest.raises(ValueError, match=message):
            MazeRunner(**bad)
