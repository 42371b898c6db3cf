"""The native tasks against slow references for a single lane, written independently."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from amago.envs.catalogue import TASKS
from amago.envs.domains.dark_key_to_door import DarkKeyToDoor
from amago.envs.domains.t_maze import TMaze
from amago.envs.domains.wind import Wind
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.envs.vector import NativeVector

LANES = 6


def reference_t_maze(corridor, active, goal, actions):
    """(observation, reward) after every action, cell by cell."""
    cells = {(x, 0) for x in range(-1 if active else 0, corridor + 1)}
    cells |= {(corridor, 1), (corridor, -1)}
    cue, at, visited = ((-1, 0) if active else (0, 0)), (0, 0), {(0, 0)}
    steps = corridor + 3 if active else corridor + 1
    for t, action in enumerate(actions[:steps]):
        move = {0: (1, 0), 1: (0, 1), 2: (-1, 0), 3: (0, -1)}[action]
        target = (at[0] + move[0], at[1] + move[1])
        at = target if target in cells else at
        if at[0] == corridor:
            obs = (1, at[1])
        else:
            obs = (0, goal if at == cue and at not in visited else 0)
        visited.add(at)
        if t == steps - 1:
            yield obs, float(at[1] == goal)
        else:
            free = action == 0 or (active and t < 2)
            yield obs, 0.0 if free else -1.0 / corridor


def reference_key_door(grid, limit, horizon, world, actions):
    """(observation, reward, first) after every action."""
    (start, key, door), at, has_key, t = (tuple(map(int, c)) for c in world), None, False, 0
    at = start
    for time, action in enumerate(actions[:horizon], start=1):
        dx, dy = [(-1, 0), (0, 1), (1, 0), (0, -1), (0, 0)][action]
        if 0 <= at[0] + dx < grid and 0 <= at[1] + dy < grid:
            at = (at[0] + dx, at[1] + dy)
        t, reward, over = t + 1, 0.0, False
        if not has_key and at == key:
            has_key, reward = True, reward + 1
        if has_key and at == door:
            over, reward = True, reward + 1
        soft = (over or t == limit) and time < horizon
        if soft:
            at, has_key, t = start, False, 0
        yield (at[0] / grid, at[1] / grid, float(has_key), t / limit), reward, soft


def play(task, num_calls, actions_of):
    """Per lane: the world at its start, and the rows of every finished rollout."""
    vector = NativeVector(task, LANES, seed=3)
    rng = np.random.default_rng(1)
    vector.reset()
    states = [actions_of.world(task, lane) for lane in range(LANES)]
    open_rows = [[] for _ in range(LANES)]
    for _ in range(num_calls):
        action = actions_of.draw(rng)
        step = vector.step(action)
        finals = dict(zip(step.final_lanes.tolist(), range(LANES), strict=False))
        for lane in range(LANES):
            source, row = (step.final, finals[lane]) if lane in finals else (step.rows, lane)
            open_rows[lane].append((action[lane], source, row))
            if lane in finals:
                yield states[lane], open_rows[lane]
                open_rows[lane], states[lane] = [], actions_of.world(task, lane)


class Discrete:
    def __init__(self, weights, world):
        self.weights, self.world = np.array(weights) / np.sum(weights), world

    def draw(self, rng):
        return rng.choice(len(self.weights), LANES, p=self.weights)


@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize("corridor", [1, 2, 6])
def test_t_maze_equals_its_reference_in_random_play(corridor, active):
    # Mostly forward, or the junction would hardly be seen.
    policy = Discrete([5, 1, 1, 1], lambda task, lane: int(task.goal[lane]))
    rollouts, wins = 0, 0
    for goal, rows in play(TMaze(corridor, active), 300, policy):
        actions = [int(action) for action, _, _ in rows]
        want = list(reference_t_maze(corridor, active, goal, actions))
        assert len(rows) == len(want) == corridor + (3 if active else 1)
        for (_, source, row), (obs, reward) in zip(rows, want, strict=True):
            assert source.obs["observation"][row].tolist() == list(obs)
            assert source.prev_reward[row] == np.float32(reward)
        _, source, row = rows[-1]
        assert source.terminal[row] and source.success[row] == (want[-1][1] == 1.0)
        rollouts, wins = rollouts + 1, wins + source.success[row]
    assert rollouts >= 150 and 0 < wins < rollouts


@pytest.mark.parametrize("active", [False, True])
def test_remembering_the_cue_earns_exactly_one_in_the_t_maze(active):
    corridor = 10
    vector = NativeVector(TMaze(corridor, active), 32, seed=0)
    rows = vector.reset()
    script = ([2] if active else []) + [0] * (corridor + active)
    total, cue = np.zeros(32), rows.obs["observation"][:, 1]
    for action in script:
        step = vector.step(np.full(32, action))
        total += step.rows.prev_reward
        cue = np.where(cue == 0, step.rows.obs["observation"][:, 1], cue)
    step = vector.step(np.where(cue > 0, 1, 3))
    assert step.final is not None and (total + step.final.prev_reward == 1.0).all()
    assert step.final.success.all() and {-1.0, 1.0} == set(cue.tolist())


@pytest.mark.parametrize(("grid", "limit", "horizon"), [(1, 3, 7), (2, 5, 20), (4, 9, 60)])
def test_dark_key_to_door_equals_its_reference_in_random_play(grid, limit, horizon):
    policy = Discrete(
        [1, 1, 1, 1, 1],
        lambda task, lane: np.stack([task.start[lane], task.key[lane], task.door[lane]]),
    )
    rollouts, firsts = 0, 0
    for world, rows in play(DarkKeyToDoor(grid, limit, horizon), 600, policy):
        actions = [int(action) for action, _, _ in rows]
        want = list(reference_key_door(grid, limit, horizon, world, actions))
        assert len(rows) == horizon
        for (_, source, row), (obs, reward, first) in zip(rows, want, strict=True):
            assert source.obs["observation"][row].tolist() == np.float32(obs).tolist()
            assert source.prev_reward[row] == reward and source.first[row] == first
            firsts += first
        _, source, row = rows[-1]
        assert source.terminal[row] and not source.first[row]
        rollouts += 1
    assert rollouts >= 60 and firsts > 0


def test_key_under_the_start_pays_when_a_step_ends_there_and_a_shared_cell_pays_twice():
    task = DarkKeyToDoor(grid=3, trial_limit=10, horizon=50)
    task.allocate(2)
    task.reset_lanes(np.arange(2), np.arange(2))
    task.start[:], task.position[:] = 1, 1
    task.key[:], task.door[:] = [[1, 1], [2, 1]], [[0, 1], [2, 1]]
    reward, _, first, success = task.step(np.array([4, 2]))
    assert reward.tolist() == [1.0, 2.0] and first.tolist() == [False, True]
    assert success.tolist() == [False, True]
    assert task.observe()["observation"][:, 2].tolist() == [1.0, 0.0]


def test_success_in_the_dark_room_means_one_solved_trial_and_lasts_to_the_end():
    vector = NativeVector(DarkKeyToDoor(grid=2, trial_limit=6, horizon=12), 64, seed=0)
    vector.reset()
    rng, solved = np.random.default_rng(0), np.zeros(64, bool)
    had_key = np.zeros(64, bool)
    for _ in range(12):
        step = vector.step(rng.integers(0, 5, 64))
        rows = step.rows if step.final is None else step.final
        opened = (rows.prev_reward == 2) | (had_key & (rows.prev_reward == 1))
        solved |= opened
        had_key = rows.obs["observation"][:, 2] == 1
        assert np.array_equal(rows.success, solved)
    assert step.final is not None and 0 < solved.sum() < 64


def test_wind_equals_its_reference_and_success_is_being_inside_at_the_end():
    class Continuous:
        @staticmethod
        def world(task, lane):
            return task.wind[lane].copy()

        @staticmethod
        def draw(rng):
            return rng.uniform(-1.5, 1.5, (LANES, 2)).astype(np.float32)

    rollouts = 0
    for wind, rows in play(Wind(horizon=20), 200, Continuous):
        x = y = 0.0
        assert np.abs(wind).max() <= 0.08 and len(rows) == 20
        for action, source, row in rows:
            x += 0.1 * float(np.clip(action[0], -1, 1)) + wind[0]
            y += 0.1 * float(np.clip(action[1], -1, 1)) + wind[1]
            assert np.allclose(source.obs["observation"][row], [x, y], atol=1e-5)
            inside = float(np.hypot(x, y - 1.0) <= 0.03)
            assert source.prev_reward[row] == inside and source.success[row] == bool(inside)
        assert source.terminal[row]
        rollouts += 1
    assert rollouts == 10 * LANES


def test_a_player_who_knows_the_wind_holds_the_goal():
    vector = NativeVector(Wind(), 16, seed=0)
    rows, total = vector.reset(), np.zeros(16)
    for t in range(75):
        aim = np.array([0.0, 1.0]) - rows.obs["observation"] - vector.task.wind
        step = vector.step(np.clip(aim / 0.1, -1, 1))
        rows = step.rows
        total += (step.final or rows).prev_reward
        assert (t == 74) == (step.final is not None)
    assert step.final.success.all() and (total > 15).all()
    # The goal is 1 away and nothing moves faster than .18.
    assert total.max() <= 70


@pytest.mark.parametrize("task_id", TASKS)
def test_registered_tasks_pass_gymnasiums_own_checker(task_id):
    check_env(gym.make(task_id, render_mode="rgb_array").unwrapped)


@pytest.mark.parametrize("task_id", TASKS)
def test_single_environments_play_the_worlds_of_the_native_lanes(task_id):
    native = make_vector(EnvSettings(id=task_id), seed=2, num_lanes=2)
    single = make_vector(EnvSettings(), seed=2, num_lanes=2, make_env=lambda: gym.make(task_id))
    assert single.spec.horizon == native.spec.horizon
    rows = [native.reset(), single.reset()]
    space = gym.make(task_id).action_space
    space.seed(0)
    for _ in range(native.spec.horizon + 5):
        for key in ("obs", "prev_reward", "first", "terminal", "last", "world_seed"):
            a, b = (getattr(r, key) for r in rows)
            pairs = [(a[k], b[k]) for k in a] if key == "obs" else [(a, b)]
            assert all(np.array_equal(*pair) for pair in pairs)
        action = np.stack([space.sample() for _ in range(2)])
        rows = [vector.step(action).rows for vector in (native, single)]


@pytest.mark.parametrize("task_id", TASKS)
def test_native_lanes_go_on_as_before_beside_idle_ones(task_id):
    everyone, some = (make_vector(EnvSettings(id=task_id), seed=2, num_lanes=3) for _ in range(2))
    everyone.reset(), some.reset()
    space = gym.make(task_id).action_space
    space.seed(0)
    idle = np.array([False, True, False])
    for _ in range(2 * everyone.spec.horizon):  # idle lanes are past their ends by then
        action = np.stack([space.sample() for _ in range(3)])
        a, b = (v.step(action, m).rows.select(~idle) for v, m in ((everyone, None), (some, idle)))
        assert all(np.array_equal(a.obs[key], b.obs[key]) for key in a.obs)
        for name in ("prev_reward", "first", "terminal", "time", "world_seed"):
            assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert some.episodes[1] == 1 < some.episodes[0] == everyone.episodes[0]


@pytest.mark.parametrize(
    ("task_id", "action", "shape"),
    [
        ("amago/TMaze-v0", 0, (224, 480, 3)),
        ("amago/ActiveTMaze-v0", 0, (224, 480, 3)),
        ("amago/DarkKeyToDoor-v0", 0, (216, 216, 3)),
        ("amago/PackageDelivery-v0", 0, (240, 288, 3)),
        ("amago/MazeRunner-v0", 1, (300, 300, 3)),
    ],
)
def test_frames_are_legible_rgb_and_change_when_the_agent_moves(task_id, action, shape):
    env = gym.make(task_id, render_mode="rgb_array")
    moves = 0
    for seed in range(20):
        before, _ = env.reset(seed=seed)
        frame = env.render()
        assert frame.dtype == np.uint8 and frame.shape == shape
        assert np.array_equal(frame, env.render())
        after, *_ = env.step(action)
        # Only the walls of the dark room can be in the way.
        moved = "Door" not in task_id or before[0] != after[0]
        assert not moved or not np.array_equal(frame, env.render())
        moves += moved
    assert moves > 10


def test_wind_frames_follow_the_point():
    env = gym.make("amago/Wind-v0", render_mode="rgb_array")
    env.reset(seed=0)
    frames = [env.render()]
    env.step(np.ones(2, np.float32))
    frames.append(env.render())
    assert frames[0].shape == (240, 240, 3) and not np.array_equal(*frames)


@pytest.mark.parametrize(
    "make", [lambda: TMaze(0), lambda: DarkKeyToDoor(grid=0), lambda: Wind(horizon=-1)]
)
def test_worlds_of_no_size_are_refused(make):
    with pytest.raises(ValueError, match="to be at least 1, got"):
        make()
