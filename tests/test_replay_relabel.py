"""Relabeled trajectories are what the real environment would have made of the instruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_goals_helpers import (
    DOMAINS,
    MAZE,
    play,
    play_batched,
    record_script,
    rollouts,
    scripted_env,
    some_rollouts,
)
from test_replay_helpers import counting_trajectory, same

from amago.envs.domains.maze_runner.task import MazeRunner
from amago.envs.settings import EnvSettings
from amago.goals import GoalSpec
from amago.replay.candidates import candidates, completed_rows
from amago.replay.describe import describe_relabel
from amago.replay.rarity import Rarity, combine, count
from amago.replay.relabel import Relabeler, _merged, _relabeled
from amago.replay.settings import RelabelSettings
from amago.types import Trajectory

LETTERS = GoalSpec(4, 1, "token", vocabulary=("", "a", "b", "c", "d"))
ALL = RelabelSettings("all")
seeds = st.integers(0, 2**32 - 1)
modes = st.sampled_from(
    [RelabelSettings(mode, weighted) for mode in ("some", "all") for weighted in (True, False)]
)


def rarity_of(trajectories: tuple[Trajectory, ...]) -> Rarity:
    return Rarity(combine([count(trajectory) for trajectory in trajectories]))


def relabel_checked(
    settings: RelabelSettings,
    rarity: Rarity,
    before: Trajectory,
    seed: int,
    *,
    repeats: bool = False,
) -> tuple[Trajectory, int]:
    """The relabeled trajectory, of which all holds that always does, and h, the number of goals
    put in."""
    relabeler = Relabeler(settings, rarity, repeats=repeats)
    choice = relabeler.choose(before, np.random.default_rng(seed))
    after = relabeler(before, np.random.default_rng(seed))
    n, h, k = int(before.progress[-1]), len(choice.rows), len(before.instruction)
    if h == 0:
        assert after is before
        return after, 0
    assert n + h <= k == len(after.instruction)
    offsets, goals = before.achieved
    for row, goal in zip(choice.rows, choice.goals, strict=True):
        assert (goals[offsets[row] : offsets[row + 1]] == goal).all(1).any()
        assert not (goals[offsets[row - 1] : offsets[row]] == goal).all(1).any()
    if not repeats and len(np.unique(before.instruction, axis=0)) == k:
        assert len(np.unique(after.instruction, axis=0)) == k
    assert same(after, _relabeled(before, _merged(before, choice, repeats=repeats)))
    steps = after.num_steps
    assert after.prev_reward.dtype == np.float32 and after.progress.dtype == before.progress.dtype
    assert after.prev_reward[0] == 0 and after.progress[0] == 0
    assert (np.diff(after.progress.astype(int)) == after.prev_reward[1:]).all()
    assert after.prev_reward.sum() >= n + h
    complete = after.progress == k
    assert complete[:-1].any() == False  # noqa: E712 - an array's own truth
    assert not after.terminal[:-1].any()
    assert complete[-1] or steps == before.num_steps
    assert after.terminal[-1] == (complete[-1] or before.terminal[-1])
    for name in ("obs", "prev_action", "first"):
        a, b = getattr(after, name), getattr(before, name)
        a, b = (v["observation"] if name == "obs" else v for v in (a, b))
        assert np.array_equal(a, b[: steps + 1])
    return after, h


def check_played(env: gym.Env[Any, Any], trajectory: Trajectory) -> None:
    """The real environment, told the world and the instruction, makes the same trajectory."""
    offsets, goals = trajectory.achieved
    stored = replace(trajectory, achieved=(offsets.astype(np.int64), goals))
    assert same(play(env, trajectory), stored)


def check_spawn(domain: EnvSettings, kept: Sequence[Trajectory]) -> None:
    """Runners return to where they began, and that achieves nothing."""
    if domain.id != MAZE.id:
        return
    size = MazeRunner(**domain.kwargs).size
    spawn = np.array([size // 2, size - 2])
    returns = sum(int((np.diff(t.achieved[0])[1:] == 0).any()) for t in kept)
    assert returns > len(kept) / 4
    assert not any((t.achieved[1] == spawn).all(1).any() for t in kept)


@pytest.mark.parametrize("name", DOMAINS)
def test_rollouts_are_of_all_kinds_that_relabeling_distinguishes(name):
    kept = some_rollouts(name)
    complete = [t.progress[-1] == len(t.instruction) for t in kept]
    assert 20 < sum(complete) < len(kept) / 2
    assert sum(t.progress[-1] > 0 for t in kept) - sum(complete) > 50
    assert sum(len(candidates(t, repeats=False).rows) > 0 for t in kept) > 0.85 * len(kept)
    check_spawn(DOMAINS[name], kept)


@pytest.mark.parametrize("name", DOMAINS)
def test_rewards_are_those_that_the_real_environment_pays(name):
    kept, domain = some_rollouts(name), DOMAINS[name]
    rarity = rarity_of(kept)
    env = gym.make(domain.id, disable_env_checker=True, **domain.kwargs)
    changed: list[Trajectory] = []

    @settings(max_examples=200, deadline=None)
    @given(st.integers(0, len(kept) - 1), modes, seeds)
    def check(index: int, relabel: RelabelSettings, seed: int) -> None:
        after, h = relabel_checked(relabel, rarity, kept[index], seed)
        if h:
            changed.append(after)
        check_played(env, after)

    check()
    assert len(changed) > 60
    assert sum(t.progress[-1] == len(t.instruction) for t in changed) > 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        *((name, DOMAINS[name].kwargs) for name in DOMAINS),
        ("delivery", {}),
        ("maze", {}),
        ("maze", {"size": 31}),
        *(
            ("maze", {"size": 9, "horizon": 90, **variant})
            for variant in ({"rewired": True}, {"continuous": True}, {"position": False})
        ),
    ],
)
def test_ten_thousand_rollouts_are_paid_exactly(name, kwargs):
    domain = replace(DOMAINS[name], kwargs=kwargs)
    env = gym.make(domain.id, disable_env_checker=True, **kwargs)
    changed = 0
    for part in range(10):
        before = rollouts(domain, 1000, seed=100 + part, lanes=250)
        check_spawn(domain, before)
        rarity = rarity_of(tuple(before))
        for relabel in (RelabelSettings(), RelabelSettings(importance_sampling=False), ALL):
            made = [relabel_checked(relabel, rarity, t, seed) for seed, t in enumerate(before)]
            after = [trajectory for trajectory, _ in made]
            changed += sum(h > 0 for _, h in made)
            for trajectory, played in zip(after, play_batched(domain, after), strict=True):
                for field, values in played.items():
                    assert np.array_equal(getattr(trajectory, field)[1:], values), field
            for trajectory in after[part::20]:
                check_played(env, trajectory)
    assert changed > 9000


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 4), max_size=3, unique=True), min_size=3, max_size=30),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    modes,
    st.booleans(),
    seeds,
)
def test_steps_that_achieve_several_goals_are_paid_like_in_the_environment(
    script, asked, relabel, repeats, seed
):
    rows = [[[goal] for goal in goals] for goals in script]
    before = record_script(LETTERS, rows, [[goal] for goal in asked])
    rarity = rarity_of((before,))
    after, _ = relabel_checked(relabel, rarity, before, seed, repeats=repeats)
    played = play(scripted_env(LETTERS, rows, [[1]]), after)
    for name in ("prev_reward", "terminal", "progress", "instruction"):
        assert same(getattr(played, name), getattr(after, name)), name
    # Goals come one step at a time, in hindsight too.
    assert after.prev_reward.max(initial=0) <= 1


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 4), max_size=3, unique=True), min_size=3, max_size=30),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.booleans(),
    st.booleans(),
    seeds,
)
def test_the_new_instruction_is_what_happened_then_what_is_still_open(
    script, asked, rare, repeats, seed
):
    rows = [[[goal] for goal in goals] for goals in script]
    before = record_script(LETTERS, rows, [[goal] for goal in asked])
    n, k = int(before.progress[-1]), len(asked)
    rarity = rarity_of((before,))
    relabeler = Relabeler(RelabelSettings("some", rare), rarity, repeats=repeats)
    choice = relabeler.choose(before, np.random.default_rng(seed))
    h = len(choice.rows)
    real = completed_rows(before).tolist()
    assert h <= k - n and (np.diff(choice.rows) > 0).all()
    assert not {*choice.rows.tolist()} & {0, *real}
    offsets, goals = before.achieved
    for row, goal in zip(choice.rows, choice.goals, strict=True):
        assert goal.tolist() in goals[offsets[row] : offsets[row + 1]].tolist()
    chosen = zip(choice.rows.tolist(), choice.goals[:, 0].tolist(), strict=True)
    happened = sorted([*zip(real, asked[:n], strict=True), *chosen])
    still_open = asked[n:]
    for goal in [] if repeats else choice.goals[:, 0].tolist():
        if goal in still_open:
            still_open.remove(goal)
    want = [goal for _, goal in happened] + still_open
    instruction = _merged(before, choice, repeats=repeats)
    assert instruction[:, 0].tolist() == want[:k]
    after = _relabeled(before, instruction)
    assert after.prev_reward.sum() >= n + h
    if h == 0:
        assert same(replace(after, achieved=None), replace(before, achieved=None))


def test_nothing_changes_without_open_goals_or_candidates_or_hindsight():
    complete = record_script(LETTERS, [[], [[1]], [[2]]], "a, b")
    barren = record_script(LETTERS, [[[1]], [], []], "a, b")
    only_real = record_script(LETTERS, [[], [[1]], []], "a, b")
    rng = np.random.default_rng(0)
    for trajectory in (complete, barren, only_real):
        relabeler = Relabeler(ALL, rarity_of((trajectory,)))
        assert all(relabeler(trajectory, rng) is trajectory for _ in range(20))
    busy = record_script(LETTERS, [[], [[3]], [[4]]], "a, b")
    assert Relabeler(RelabelSettings("none"), None)(busy, rng) is busy
    assert candidates(busy, repeats=False).rows.tolist() == [1, 2]


def test_staying_achieves_no_goal_anew():
    stays = record_script(LETTERS, [[], [[3]], [[3], [4]], [[4]], [], [[4]], [[4]]], "a, b")
    found = candidates(stays, repeats=True)
    assert [*zip(found.rows.tolist(), found.goals[:, 0].tolist(), strict=True)] == [
        (1, 3),
        (2, 4),
        (5, 4),
    ]


def test_goals_are_distinct_unless_the_domain_repeats_them():
    script = [[], [[1]], [[3]], [], [[3]], [[1]], [[4]], [], [[4]]]
    trajectory = record_script(LETTERS, script, "a, b, d, b")  # n = 1, k = 4
    rng = np.random.default_rng(0)
    for repeats, want in ((False, [{3, 4}]), (True, [{1, 3, 4}, {3, 4}, {1, 3}, {1, 4}])):
        relabeler = Relabeler(ALL, rarity_of((trajectory,)), repeats=repeats)
        chosen = [relabeler.choose(trajectory, rng).goals[:, 0].tolist() for _ in range(60)]
        assert all({*goals} in want for goals in chosen)
        assert any(len({*goals}) < len(goals) for goals in chosen) == repeats
    # What was chosen is not asked for a second time among what is still open.
    after = Relabeler(ALL, None)(trajectory, rng)
    assert after.instruction[:, 0].tolist() == [1, 3, 4, 2]


@pytest.mark.parametrize("name", ["maze", "rewired"])
def test_neighbouring_hindsight_goals_of_mazes_are_never_equal(name):
    kept = some_rollouts(name)
    rarity, rng = rarity_of(kept), np.random.default_rng(0)
    pairs = 0
    for trajectory in kept:
        goals = Relabeler(ALL, rarity).choose(trajectory, rng).goals
        assert not (goals[1:] == goals[:-1]).all(axis=1).any()
        pairs += max(len(goals) - 1, 0)
    assert pairs > 150


def test_how_many_goals_are_put_in_is_uniform_or_all_that_can_be():
    script = [[], *([[3]], [[4]], [[3]], [[1]], [[4]], [[4]])]
    trajectory = record_script(LETTERS, script, "a, b, b, b")  # n = 1, k = 4
    rng = np.random.default_rng(0)
    some = Relabeler(RelabelSettings(), rarity_of((trajectory,)), repeats=True)
    numbers = [len(some.choose(trajectory, rng).rows) for _ in range(4000)]
    counts = np.bincount(numbers)
    assert len(counts) == 4
    assert ((counts - 1000.0) ** 2 / 1000.0).sum() < 16.3  # 99.9 % quantile, 3 degrees of freedom
    every = Relabeler(ALL, rarity_of((trajectory,)), repeats=True)
    assert {len(every.choose(trajectory, rng).rows) for _ in range(50)} == {3}
    few = record_script(LETTERS, [[], [[3]], []], "a, b, b, b")
    assert {len(every.choose(few, rng).rows) for _ in range(50)} == {1}


def test_without_importance_steps_are_uniform_then_goals_within_them_are():
    trajectory = record_script(LETTERS, [[], [[2], [3]], [], [[2]], [[4]], []], "a")
    relabeler = Relabeler(RelabelSettings("all", importance_sampling=False), None)
    rng = np.random.default_rng(0)
    chosen = [relabeler.choose(trajectory, rng) for _ in range(6000)]
    goals = np.bincount([int(choice.goals[0, 0]) for choice in chosen], minlength=5)[2:]
    expected = 6000 * np.array([1 / 6 + 1 / 3, 1 / 6, 1 / 3])
    assert ((goals - expected) ** 2 / expected).sum() < 13.8  # 99.9 %, 2 degrees of freedom


def test_rollouts_of_many_goals_are_paid_like_in_the_environment():
    rng = np.random.default_rng(0)
    rows = [[], *([[int(goal)] for goal in rng.permutation(4)[:3] + 1] for _ in range(200))]
    spec = GoalSpec(6, 1, "token", vocabulary=("", *"abcde"), repeats=True)
    before = record_script(spec, rows, "e x6")
    assert before.achieved[0].dtype == np.uint16 and len(before.achieved[1]) == 600
    relabeler = Relabeler(ALL, rarity_of((before,)), repeats=True)
    lengths = set()
    for _ in range(30):
        after = relabeler(before, rng)
        played = play(scripted_env(spec, rows, "a"), after)
        assert same(played.progress, after.progress) and after.progress[-1] == 6
        lengths.add(after.num_steps)
    assert len(lengths) > 3


def test_full_success_in_hindsight_cuts_the_rollout_there_and_is_terminal():
    before = record_script(LETTERS, [[], [[3]], [[1]], [[4]], [], [[3]]], "a, b")
    after = _relabeled(before, LETTERS.instruction("c, a"))
    assert after.num_steps == 2 and after.terminal.tolist() == [False, False, True]
    assert after.prev_reward.tolist() == [0, 1, 1] and after.achieved[0].tolist() == [0, 0, 1, 2]
    assert same(before, record_script(LETTERS, [[], [[3]], [[1]], [[4]], [], [[3]]], "a, b"))


def test_a_cut_off_rollout_stays_cut_off_unless_it_succeeds():
    before = record_script(LETTERS, [[], [[3]], [[1]], []], "b, b")
    before = replace(before, terminal=np.zeros(4, bool))
    assert not _relabeled(before, LETTERS.instruction("c, b")).terminal.any()
    assert _relabeled(before, LETTERS.instruction("c, a")).terminal.tolist() == [0, 0, 1]


def test_single_goals_ask_for_the_first_and_relabel_like_her():
    script = [[], [[3]], [[1]], [[4]], [[2]], []]
    done, open_ = (record_script(LETTERS, script, asked) for asked in ("a, b, b", "b, b"))
    alone = record_script(LETTERS, [[], [[3]], [[4]], []], "a, b")
    for relabel in ("none", "some", "all"):
        relabeler = Relabeler(
            RelabelSettings(relabel, importance_sampling=False, multi_goal=False), None
        )
        rng = np.random.default_rng(0)
        for trajectory, first, length in ((done, 1, 2), (open_, 2, 4)):
            after = relabeler(trajectory, rng)
            assert after.instruction.tolist() == [[first]] and after.num_steps == length
            assert after.prev_reward.sum() == 1 and after.terminal[-1]
        asked = {int(relabeler(alone, rng).instruction[0, 0]) for _ in range(60)}
        assert asked == {"none": {1}, "some": {1, 3, 4}, "all": {3, 4}}[relabel]


def test_a_trajectory_without_instruction_is_refused():
    with pytest.raises(ValueError, match="expected a trajectory with an instruction"):
        Relabeler(ALL, None)(counting_trajectory(0, 0, 4), np.random.default_rng(0))


def test_the_description_says_what_was_asked_what_happened_and_what_is_asked_now():
    before = record_script(LETTERS, [[], [[3]], [[1], [2]], [], [[4]], []], "a, b, b")
    after = _relabeled(before, LETTERS.instruction("c, a, d"))
    assert describe_relabel(before, after, LETTERS).splitlines() == [
        f"world      seed {before.world_seed}, Scripted",
        "asked      a, b x2",
        "happened   1 of 3 goals in 5 steps, ends there, return 1",
        "achieved   goals 4 times, 4 different",
        "  step    2  a                +1",
        "now asked  c, a, d",
        "happens    3 of 3 goals in 4 steps, ends in success, return 3",
        "  step    1  c                +1  in hindsight",
        "  step    2  a                +1  as before",
        "  step    4  d                +1  in hindsight",
    ]
    assert describe_relabel(before, before, LETTERS).endswith("now asked  the same")
