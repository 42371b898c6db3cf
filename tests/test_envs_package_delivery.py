"""Package Delivery against a slow simulator in plain words, and its oracle against search."""

from __future__ import annotations

from collections import deque

import gymnasium as gym
import numpy as np
import pytest
from test_goals_helpers import DELIVERY

from amago.envs.domains.package_delivery import PackageDelivery
from amago.envs.registry import make_vector
from amago.envs.settings import EnvSettings
from amago.rollout.random_policy import RandomPolicy

State = tuple[int, int, int]


def slow_step(
    state: State, action: int, sides: list[int], drop: int, asked: list[int]
) -> tuple[State, int | None]:
    """((position, packages, done), delivered where) after one action."""
    at, stock, done = state
    delivered = None
    if action == 0 and not sides[at]:
        at += 1
    elif action in (1, 2) and sides[at]:
        at = at + 1 if action == sides[at] else 0
    elif action >= 4:
        if action == drop and stock > 0 and not sides[at] and at > 0:
            delivered, stock = at, stock - 1
            if done < len(asked) and asked[done] == at:
                done += 1
        else:
            at = 0
    return (0 if at == len(sides) else at, stock, done), delivered


def world(task: PackageDelivery, lane: int) -> tuple[list[int], int, list[int]]:
    asked = task.instruction[lane, : task.num_goals[lane], 0].tolist()
    return task.side[lane].tolist(), int(task.drop[lane]), asked


def test_every_step_is_that_of_a_simulator_in_plain_words():
    vector = make_vector(EnvSettings(id="amago/PackageDelivery-v0"), seed=3, num_lanes=40)
    task = vector.task
    rows = vector.reset()
    rng = np.random.default_rng(0)
    worlds = [world(task, lane) for lane in range(40)]
    states = [(0, 3 * len(asked), 0) for *_, asked in worlds]
    deliveries = forks_seen = finished = 0
    for _ in range(180):
        # Good actions half of the time, so that roads are travelled to their end.
        sides = task.side[np.arange(40), task.position]
        good = np.where(rng.random(40) < 0.1, task.drop, sides)
        action = np.where(rng.random(40) < 0.8, good, rng.integers(0, 8, 40))
        step = vector.step(action)
        finals = {lane: index for index, lane in enumerate(step.final_lanes.tolist())}
        for lane in range(40):
            after, delivered = slow_step(states[lane], int(action[lane]), *worlds[lane])
            row, at = (step.final, finals[lane]) if lane in finals else (step.rows, lane)
            offsets, goals = row.achieved
            achieved = goals[offsets[at] : offsets[at + 1], 0].tolist()
            assert achieved == ([] if delivered is None else [delivered])
            assert row.progress[at] == after[2]
            assert row.prev_reward[at] == after[2] - states[lane][2]
            complete = after[2] == len(worlds[lane][2])
            assert row.terminal[at] == row.last[at] == (complete or row.time[at] == 180)
            assert row.success[at] == complete
            fork = int(worlds[lane][0][after[0]] > 0)
            assert row.obs["observation"][at].tolist() == [after[0], after[1], fork]
            deliveries, forks_seen = deliveries + len(achieved), forks_seen + fork
            states[lane] = after
            if lane in finals:
                finished += complete
                worlds[lane] = world(task, lane)
                states[lane] = (0, 3 * len(worlds[lane][2]), 0)
                assert step.rows.time[lane] == 0 and step.rows.progress[lane] == 0
    assert deliveries > 200 and forks_seen > 500 and finished > 0
    assert rows.achieved[0].tolist() == [0] * 41


def test_a_road_by_hand():
    env = gym.make("amago/PackageDelivery-v0")
    env.reset(seed=0)
    task = env.unwrapped.task
    task.side[0] = 0
    task.side[0, 2] = 1  # a fork at 2, whose left side is right
    task.drop[0] = 6
    task.instruct(0, "1, 3")
    script = [
        (6, 0, 0.0, []),  # nothing to deliver at 0
        (0, 1, 0.0, []),
        (1, 1, 0.0, []),  # no fork here
        (4, 0, 0.0, []),  # the wrong drop
        (0, 1, 0.0, []),
        (6, 1, 1.0, [[1]]),
        (6, 1, 0.0, [[1]]),  # achieved again, asked for no more
        (0, 2, 0.0, []),
        (0, 2, 0.0, []),  # forward does nothing at a fork
        (2, 0, 0.0, []),  # the wrong side
        (0, 1, 0.0, []),
        (0, 2, 0.0, []),
        (1, 3, 0.0, []),
        (3, 3, 0.0, []),
        (6, 3, 1.0, [[3]]),
    ]
    for number, (action, position, reward, achieved) in enumerate(script):
        obs, got, terminated, truncated, info = env.step(action)
        assert (obs[0], got, info["achieved"]) == (position, reward, achieved)
        assert terminated == (number == len(script) - 1) and not truncated
    assert info["success"] and info["progress"] == 2 and obs[1] == 3


def test_without_packages_a_drop_only_sends_back_and_the_end_of_the_road_does_too():
    task = PackageDelivery(road=14, max_goals=1)
    task.allocate(1)
    task.reset_lanes(np.array([0]), np.array([0]))
    task.side[0], task.drop[0] = 0, 4
    task.instruct(0, "5")
    moves = [0, 4, 4, 4]
    counts = [len(task.move(np.array([action]))[1]) for action in moves]
    assert counts == [0, 1, 1, 1] and task.packages[0] == 0 and task.position[0] == 1
    assert not len(task.move(np.array([4]))[1]) and task.position[0] == 0
    for expected in [*range(1, 14), 0]:
        task.move(np.array([0]))
        assert task.position[0] == expected


def test_worlds_are_drawn_as_the_paper_says():
    task = PackageDelivery()
    task.allocate(600)
    task.reset_lanes(np.arange(600), np.arange(600))
    forks = (task.side > 0).sum(1)
    assert {*forks.tolist()} == {2, 3, 4, 5, 6} and not task.side[:, 0].any()
    assert {*task.num_goals.tolist()} == {2, 3, 4} and {*task.drop.tolist()} == {4, 5, 6, 7}
    assert (task.side == 1).sum() == pytest.approx((task.side == 2).sum(), rel=0.15)
    for lane in range(600):
        places = task.instruction[lane, : task.num_goals[lane], 0].astype(int)
        assert (np.diff(places) > 0).all() and places[0] > 0
        assert not task.side[lane, places].any()
        assert not task.instruction[lane, task.num_goals[lane] :].any()
    single = PackageDelivery(max_goals=1)
    single.allocate(20)
    single.reset_lanes(np.arange(20), np.arange(20))
    assert (single.num_goals == 1).all()


def fewest_steps(task: PackageDelivery, lane: int) -> list[int]:
    """Breadth-first search over every state: the first time that each goal is complete."""
    sides, drop, asked = world(task, lane)
    start = (0, 3 * len(asked), 0)
    queue, seen, found = deque([(start, 0)]), {start}, {}
    while queue and len(found) < len(asked):
        state, steps = queue.popleft()
        for action in range(8):
            after, _ = slow_step(state, action, sides, drop, asked)
            if after not in seen:
                seen.add(after)
                found.setdefault(after[2], steps + 1) if after[2] else None
                queue.append((after, steps + 1))
    return [found[n + 1] for n in range(len(asked))]


def test_the_oracle_is_as_fast_as_exhaustive_search_for_any_order_of_goals():
    task = PackageDelivery(**DELIVERY.kwargs)
    task.allocate(25)
    task.reset_lanes(np.arange(25), np.arange(25))
    rng = np.random.default_rng(0)
    for lane in range(25):
        assert task.best_steps(lane).tolist() == fewest_steps(task, lane)
        task.instruct(lane, rng.choice(task.achievable(lane)[:, 0], 4))  # unordered, repeated
        assert task.best_steps(lane).tolist() == fewest_steps(task, lane)


def test_random_play_hardly_ever_succeeds():
    vector = make_vector(EnvSettings(id="amago/PackageDelivery-v0"), seed=0, num_lanes=100)
    policy, rows, solved = RandomPolicy(vector.spec, 0), vector.reset(), 0
    for _ in range(180):
        step = vector.step(policy.act(rows, None)[0])
        rows, solved = step.rows, solved + (0 if step.final is None else step.final.success.sum())
    assert solved < 10


def test_goals_that_the_world_cannot_have_are_refused():
    env = gym.make("amago/PackageDelivery-v0")
    env.reset(seed=0)
    fork = int(env.unwrapped.task.side[0].argmax())
    for bad, message in (
        (str(fork), f"can be achieved in this world, got {fork}"),
        ("0", "got 0"),
        ("30", r"whole numbers in \[0\]..\[29\]"),
        ("1, 2, 3, 4, 5", "1 to 4 goals, got 5"),
    ):
        with pytest.raises(ValueError, match=message):
            env.reset(seed=0, options={"instruction": bad})
    with pytest.raises(ValueError, match="road to be at least 11"):
        PackageDelivery(road=10)
