"""How rare goals are, that this follows the store's window, and what is chosen because of it."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from test_goals_helpers import MAZE, record_script, scripted_spec, some_rollouts
from test_replay_helpers import COUNTING_SPEC, same, sequences

import amago
from amago.envs.registry import make_vector
from amago.goals import GoalSpec
from amago.replay.candidates import candidates
from amago.replay.describe import goal_choices
from amago.replay.rarity import (
    GoalCounts,
    Rarity,
    _rarity,
    combine,
    count,
    counts_from,
    keys_of,
    no_counts,
)
from amago.replay.relabel import Relabeler, StoreRelabeler, draw
from amago.replay.sampler import Sampler
from amago.replay.settings import RelabelSettings
from amago.replay.store import TrajectoryStore
from amago.types import Trajectory

ROOT = Path(amago.__file__).parents[1]
LETTERS = GoalSpec(2, 1, "token", vocabulary=("", *"abcdefghij"))
SPEC = scripted_spec(LETTERS)
Cell = tuple[int, int]
"""A row of a trajectory, and a goal that was achieved there."""
Weigh = Callable[[np.ndarray], np.ndarray]


def run_python(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def letters(*rows: str) -> Trajectory:
    """A rollout whose steps achieve the letters of each word, asked for what never happens."""
    return record_script(LETTERS, [[], *([[ord(c) - 96] for c in row] for row in rows)], "j, j")


def random_letters(seed: int, number: int) -> list[Trajectory]:
    rng = np.random.default_rng(seed)
    words = ["", "a", "b", "ab", "c", "de", "f", "gha"]
    odds = np.array([4, 8, 4, 2, 1, 1, 0.4, 0.2])
    return [
        letters(*rng.choice(words, rng.integers(2, 8), p=odds / odds.sum())) for _ in range(number)
    ]


def slow_counts(trajectories: list[Trajectory]) -> tuple[dict[int, list[int]], int, int]:
    steps: Counter[int] = Counter()
    episodes: Counter[int] = Counter()
    for trajectory in trajectories:
        offsets, goals = trajectory.achieved
        rows = [goals[a:b, 0].tolist() for a, b in itertools.pairwise(offsets.tolist())]
        steps.update(itertools.chain(*rows[1:]))
        episodes.update({*itertools.chain(*rows[1:])})
    table = {goal: [steps[goal], episodes[goal]] for goal in steps}
    return table, sum(t.num_steps for t in trajectories), len(trajectories)


def fast_counts(counts: GoalCounts) -> tuple[dict[int, list[int]], int, int]:
    rows = zip(counts.goals[:, 0], counts.steps, counts.episodes, strict=True)
    table = {int(goal): [int(s), int(e)] for goal, s, e in rows}
    return table, counts.num_steps, counts.num_episodes


def test_counts_are_steps_and_episodes_by_hand():
    counts = combine([count(letters("a", "ab", "")), count(letters("b", "c"))])
    assert fast_counts(counts) == ({1: [2, 1], 2: [2, 2], 3: [1, 1]}, 5, 2)
    less = combine([counts], [count(letters("b", "c"))])
    assert fast_counts(less) == ({1: [2, 1], 2: [1, 1]}, 3, 1)
    nothing = combine([less], [count(letters("a", "ab", ""))])
    assert same(nothing, no_counts(LETTERS))
    assert same(counts_from(counts.to_bytes(), LETTERS), counts)


def test_weights_are_the_clipped_fourth_power_of_the_logarithm():
    weights = _rarity(np.array([1, 10, 100, 1000, 999]), 1000)
    assert weights == pytest.approx([81.0, 16.0, 1.0, 1e-3, 1e-3, 1e5])
    seen = Rarity(combine([count(letters("a", "ab", "", "c"))] * 5 + [count(letters("b"))] * 5))
    goals = np.array([[1], [2], [3], [9]], np.uint8)
    steps = [-np.log10(n / 25) for n in (10, 10, 5)]
    assert seen.weights(goals, "step") == pytest.approx([s**4 for s in steps] + [1e5])
    episodes = [np.log10(2) ** 4, 1e-3, np.log10(2) ** 4, 1e5]
    assert seen.weights(goals, "episode") == pytest.approx(episodes)


def test_goals_of_many_bytes_are_told_apart_too():
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 3, (200, 5)).astype(np.float32)
    keys, rows = keys_of(wide), [tuple(row) for row in wide.tolist()]
    assert len(np.unique(keys)) == len({*rows}) < 200
    known, other = wide[:120], wide[120:]
    _, first, steps = np.unique(keys_of(known), return_index=True, return_counts=True)
    weights = Rarity(GoalCounts(known[first], steps, steps, 1000, 1000)).weights(other, "step")
    tally = Counter(rows[:120])
    want = [_rarity(np.array([tally[row]]), 1000)[0] for row in rows[120:]]
    assert weights == pytest.approx(want) and len({*np.round(weights, 6)}) > 2


def window_trajectories(made: list[Trajectory], store: TrajectoryStore) -> list[Trajectory]:
    lo, hi = store.window
    return made[lo:hi]


def test_counts_follow_the_window_through_appends_evictions_restarts_and_resumes(tmp_path):
    rng = np.random.default_rng(0)
    made: list[Trajectory] = []
    protected: list[Trajectory] = []
    checkpoint = (0, 0)
    store = TrajectoryStore(tmp_path, SPEC, 12)
    for turn in range(60):
        action = rng.choice(["append", "append", "protect", "evict", "restart", "resume"])
        if action == "append":
            new = random_letters(turn, int(rng.integers(1, 9)))
            store.append(new)
            made += new
        elif action == "protect":
            protected += random_letters(1000 + turn, 1)
            store.append_protected(protected[-1:])
        elif action == "evict":  # a checkpoint of this window is durable
            checkpoint = store.window
            store.evict()
        else:
            before = store.goal_counts()
            store.close()
            with TrajectoryStore.open_readonly(tmp_path) as reader:
                assert same(reader.goal_counts(), before)
                reader.refresh(checkpoint)
                kept = [*made[slice(*checkpoint)], *protected]
                assert fast_counts(reader.goal_counts()) == slow_counts(kept)
            capacity = int(rng.integers(8, 13))
            window = checkpoint if action == "resume" else None
            store = TrajectoryStore(tmp_path, SPEC, capacity, window)
            made = made[: store.window[1]]
            checkpoint = store.window if action == "resume" else checkpoint
        kept = [*window_trajectories(made, store), *protected]
        assert fast_counts(store.goal_counts()) == slow_counts(kept)
    assert store.window[0] > 20 and len(protected) > 3
    store.close()


LOOK = """
import sys
from amago.replay.store import TrajectoryStore
reader = TrajectoryStore.open_readonly(sys.argv[1])
for line in sys.stdin:
    if line.strip() == "refresh":
        reader.refresh()
    print(reader.goal_counts().to_bytes().hex(), flush=True)
"""


def test_a_reader_sees_the_counts_of_its_own_window_until_it_refreshes(tmp_path):
    made = random_letters(0, 30)
    with TrajectoryStore(tmp_path, SPEC, 10) as store:
        store.append(made[:10])
        looking = run_python(LOOK, tmp_path)

        def look(order: str) -> str:
            looking.stdin.write(order + "\n")
            looking.stdin.flush()
            return looking.stdout.readline().strip()

        early = store.goal_counts().to_bytes().hex()
        assert look("look") == early
        store.append(made[10:18])
        store.append_protected(made[18:20])
        late = store.goal_counts().to_bytes().hex()
        assert look("look") == early != late
        store.evict()
        assert look("refresh") == late
        looking.stdin.close()
        assert looking.wait() == 0


def test_a_kill_before_the_next_checkpoint_brings_back_its_counts(tmp_path):
    made = random_letters(1, 40)
    with TrajectoryStore(tmp_path, SPEC, 15) as store:
        store.append(made[:20])
        window, counts = store.window, store.goal_counts()
        store.append(made[20:33])  # these are lost with the process, the old ones are not
    with TrajectoryStore(tmp_path, SPEC, 15, window) as store:
        assert store.window == window and same(store.goal_counts(), counts)
        store.append(made[20:33])
        again = store.goal_counts()
    with TrajectoryStore(tmp_path, SPEC, 15, (18, 33)) as store:
        assert same(store.goal_counts(), again)
    with TrajectoryStore(tmp_path, SPEC, 15, (0, 0)) as store:
        assert same(store.goal_counts(), no_counts(LETTERS))


def test_batches_with_relabeling_are_the_same_after_a_resume_and_with_any_prefetch(tmp_path):
    made = random_letters(2, 40)

    def batches(store: TrajectoryStore, prefetch: int) -> list[object]:
        transform = StoreRelabeler(store, RelabelSettings())
        return list(Sampler(store, 8, 6, seed=3, transform=transform).batches(5, 12, prefetch))

    with TrajectoryStore(tmp_path, SPEC, 15) as store:
        store.append(made[:20])
        window, expected = store.window, batches(store, 0)
        assert all(map(same, batches(store, 1), expected))
        assert all(map(same, batches(store, 4), expected))
        store.append(made[20:30])
        assert not all(map(same, batches(store, 0), expected))
    with TrajectoryStore(tmp_path, SPEC, 15, window) as store:
        assert all(map(same, batches(store, 4), expected))
        # Another rarity makes other batches, or this test would show nothing.
        sampler = Sampler(
            store, 8, 6, 3, Relabeler(RelabelSettings(), Rarity(combine([count(made[0])])))
        )
        assert not all(map(same, sampler.batches(5, 12), expected))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_what_is_appended_while_iterating_does_not_change_what_is_rare(tmp_path, prefetch):
    with TrajectoryStore(tmp_path, SPEC, 100) as store:
        store.append(random_letters(3, 20))
        transform = StoreRelabeler(store, RelabelSettings())
        sampler = Sampler(store, 4, 6, seed=3, transform=transform)
        expected = [sampler.batch(update) for update in range(6)]
        received = []
        for batch in sampler.batches(0, 6, prefetch):
            store.append(random_letters(4 + len(received), 5))
            received.append(batch)
        assert all(map(same, received, expected))


LOAD = """
import json, sys, zlib
import numpy as np
from amago.replay.relabel import StoreRelabeler
from amago.replay.settings import RelabelSettings
from amago.replay.store import TrajectoryStore
reader = TrajectoryStore.open_readonly(sys.argv[1])
relabel = StoreRelabeler(reader, RelabelSettings()).snapshot()
sums = []
for update in range(int(sys.argv[2]), 40, int(sys.argv[3])):
    rng = np.random.default_rng((3, update))
    made = relabel(reader.read(int(rng.choice(reader.ids))), rng)
    arrays = [made.instruction, made.progress, made.prev_reward, made.terminal]
    sums.append([update, [zlib.crc32(array.tobytes()) for array in arrays]])
print(json.dumps(sums))
"""


def test_four_loader_processes_relabel_as_one_does(tmp_path):
    with TrajectoryStore(tmp_path, SPEC, 30) as store:
        store.append(random_letters(5, 40))

        def load(loaders: int) -> list[list[object]]:
            running = [run_python(LOAD, tmp_path, first, loaders) for first in range(loaders)]
            outputs = [process.communicate()[0] for process in running]
            return sorted(itertools.chain(*map(json.loads, outputs)))

        one = load(1)
        assert load(4) == one and len(one) == 40
        assert len({json.dumps(sums) for _, sums in one}) > 15


def normed(odds: np.ndarray) -> np.ndarray:
    return odds / odds.sum()


def uniform_chances(w: np.ndarray) -> np.ndarray:
    return normed(np.ones(len(w)))


def fifth(w: np.ndarray) -> float:
    return sorted(w, reverse=True)[min(5, len(w)) - 1]


SCHEME_CHANCES: list[tuple[float, Callable[[np.ndarray], np.ndarray]]] = [
    (0.6, lambda w: normed(np.where(w >= fifth(w), w, 1e-5))),
    (0.2, uniform_chances),
    (0.1, lambda w: normed(w - w.min() + 1e-5)),
    (0.1, lambda w: normed(np.maximum(w - np.median(w), 1e-5))),
]
"""How often a rollout uses each scheme, and the exact distribution of one of its draws."""


def goals_by_row(trajectory: Trajectory) -> dict[int, np.ndarray]:
    rows, goals, _ = candidates(trajectory, repeats=False)
    return {row: goals[rows == row] for row in rows.tolist()}


def draw_chances(
    goals: dict[int, np.ndarray], weigh: Weigh, of: Callable[[np.ndarray], np.ndarray]
) -> Iterator[tuple[Cell, float]]:
    """Every row with every goal of it, and the chance that one draw picks them."""
    weights = {row: weigh(found) for row, found in goals.items()}
    sums = np.array([weights[row].sum() for row in goals])
    for row, chance in zip(goals, of(sums), strict=True):
        for goal, share in zip(goals[row][:, 0].tolist(), of(weights[row]), strict=True):
            yield (row, goal), chance * share


def by_either_frequency(rare: Rarity) -> list[Weigh]:
    return [partial(rare.weights, frequency=frequency) for frequency in ("step", "episode")]


def chi_square(observed: np.ndarray, chances: np.ndarray) -> float:
    expected = observed.sum() * chances
    return float(((observed - expected) ** 2 / expected).sum())


@pytest.mark.parametrize(
    "weights", [[1.0, 2.0, 30.0], [5.0, 1.0, 1.0, 4.0, 9.0, 2.0, 3.0, 80.0], [2.0] * 7]
)
@pytest.mark.parametrize("scheme", range(4))
def test_draws_have_the_exact_distribution_of_their_scheme(scheme, weights):
    rng = np.random.default_rng(0)
    picks = [draw(np.array(weights), scheme, rng) for _ in range(4000)]
    observed = np.bincount(picks, minlength=len(weights))
    chances = SCHEME_CHANCES[scheme][1](np.array(weights))
    likely = chances > 1e-3
    assert observed[~likely].sum() < 20
    quantile = {3: 13.8, 8: 24.3, 7: 22.5}[len(weights)]  # 99.9 %
    assert chi_square(observed[likely], normed(chances[likely])) < quantile


def test_chosen_goals_have_the_exact_distribution():
    kept = random_letters(7, 60)
    rare = Rarity(combine([count(t) for t in kept]))
    trajectory = letters("a", "ab", "c", "gha", "", "f", "b", "a")
    relabeler = Relabeler(RelabelSettings("all"), rare)
    offsets, goals = trajectory.achieved
    single = record_script(
        LETTERS,
        [[], *([[g] for g in goals[a:b, 0]] for a, b in itertools.pairwise(offsets[1:]))],
        "j",
    )
    chances: Counter[Cell] = Counter()
    for weigh, (share, of) in itertools.product(by_either_frequency(rare), SCHEME_CHANCES):
        for cell, chance in draw_chances(goals_by_row(trajectory), weigh, of):
            chances[cell] += chance * share / 2
    assert sum(chances.values()) == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    seen: Counter[Cell] = Counter()
    for _ in range(6_000):
        choice = relabeler.choose(single, rng)
        seen[int(choice.rows[0]), int(choice.goals[0, 0])] += 1
    cells = sorted(chances)
    observed = np.array([seen[cell] for cell in cells])
    assert observed.sum() == 6_000 and len(cells) == 9  # "ab" after "a" is news of b only
    assert chi_square(observed, np.array([chances[cell] for cell in cells])) < 26.1  # 99.9 %, 8


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("weighted", [True, False])
def test_pairs_of_goals_have_the_exact_distribution_of_draws_without_replacement(weighted, repeats):
    # e happens in many steps of one episode; seven rows are more than the rarest five.
    kept = [*[letters("a", "a", "ab", "c", "d")] * 30, letters(*["e"] * 90), letters("f")]
    rare = Rarity(combine([count(t) for t in kept]))
    trajectory = letters("a", "", "ab", "c", "d", "e", "f", "b")
    ways = by_either_frequency(rare) if weighted else [lambda goals: np.ones(len(goals))]
    # One scheme holds for all draws of a rollout.
    schemes = SCHEME_CHANCES if weighted else [(1.0, uniform_chances)]
    chances: Counter[tuple[Cell, ...]] = Counter()
    for weigh, (share, of) in itertools.product(ways, schemes):
        every = goals_by_row(trajectory)
        for first, chance in draw_chances(every, weigh, of):
            left = {row: goals for row, goals in every.items() if row != first[0]}
            if not repeats:
                left = {row: goals[goals[:, 0] != first[1]] for row, goals in left.items()}
                left = {row: goals for row, goals in left.items() if len(goals)}
            for second, further in draw_chances(left, weigh, of):
                chances[tuple(sorted((first, second)))] += chance * further * share / len(ways)
    assert sum(chances.values()) == pytest.approx(1.0) and len(chances) == (27 if repeats else 25)
    relabeler = Relabeler(RelabelSettings("all", weighted), rare, repeats=repeats)
    rng = np.random.default_rng(0)
    seen: Counter[tuple[Cell, ...]] = Counter()
    for _ in range(6_000):
        choice = relabeler.choose(trajectory, rng)
        seen[tuple(zip(choice.rows.tolist(), choice.goals[:, 0].tolist(), strict=True))] += 1
    assert {*seen} <= {*chances}
    observed = np.array([seen[pair] for pair in chances])
    assert chi_square(observed, np.array([*chances.values()])) < 51.2  # 99.9 %, 24


def test_rare_goals_are_chosen_more_often_with_importance_sampling(tmp_path):
    with TrajectoryStore(tmp_path, SPEC, 200) as store:
        store.append(random_letters(8, 150))
        rows = {row.goal: row for row in goal_choices(store, samples=100)}
        assert [row.trajectories for row in rows.values()] == sorted(
            row.trajectories for row in rows.values()
        )
        table, _, _ = slow_counts([store.read(i) for i in store.ids.tolist()])
        assert {goal: row.trajectories for goal, row in rows.items()} == {
            LETTERS.write([[goal]]): episodes for goal, (_, episodes) in table.items()
        }
        assert all(
            0 <= r.with_importance <= 1 and 0 <= r.without_importance <= 1 for r in rows.values()
        )
        assert rows["g"].with_importance > 1.5 * rows["g"].without_importance
        assert rows["a"].with_importance < rows["a"].without_importance


def test_stored_mazes_come_back_with_their_goals_in_batches(tmp_path):
    kept = some_rollouts("maze")
    spec = make_vector(MAZE, seed=0, num_lanes=1).spec
    with TrajectoryStore(tmp_path, spec, 500) as store:
        store.append(kept)
        assert store.goals == spec.goals
        assert all(same(store.read(i), kept[i]) for i in range(0, 400, 40))
        batch = Sampler(store, 16, 50, seed=0).batch(0)
        assert (
            batch.instruction.shape == (16, 3, 2)
            and str(batch.instruction.dtype) == "torch.float32"
        )
        relabeled = Sampler(store, 16, 50, 0, StoreRelabeler(store, RelabelSettings("all"))).batch(
            0
        )
        assert not same(relabeled.instruction, batch.instruction)
        for made in (batch, relabeled):
            slots = np.arange(3) >= made.num_goals.numpy()[:, None]
            assert not made.instruction.numpy()[slots].any()
            for part in sequences(made):
                assert (part.progress[1:] - part.progress[:-1] == part.prev_reward[1:]).all()
            moved = made.to("cpu")
            assert same(moved, made)
    with pytest.raises(ValueError, match=r"goals\.max_goals: expected 2, got 3"):
        changed = GoalSpec(2, 2, low=spec.goals.low, high=spec.goals.high)
        TrajectoryStore(tmp_path, replace(spec, goals=changed), 500)


def test_a_store_of_goals_refuses_trajectories_without_them(tmp_path):
    good = letters("a", "b")
    bad = [
        (replace(good, achieved=None), "got some of them as None"),
        (replace(good, instruction=good.instruction.astype(np.int64)), "expected 1 to 2 goals"),
        (replace(good, instruction=np.ones((3, 1), np.uint8)), "expected 1 to 2 goals"),
    ]
    with TrajectoryStore(tmp_path, SPEC, 10) as store:
        for trajectory, message in bad:
            with pytest.raises(ValueError, match=message):
                store.append([good, trajectory])
        assert len(store) == 0 and same(store.goal_counts(), no_counts(LETTERS))
        store.append([good])
        with pytest.raises(ValueError, match="make the transform keep them"):
            Sampler(store, 2, 4, 0, lambda t, _: replace(t, instruction=None)).batch(0)
    with TrajectoryStore(tmp_path / "plain", COUNTING_SPEC, 10) as store:
        assert store.goals is None
        with pytest.raises(ValueError, match="without goals; sample it without relabeling"):
            StoreRelabeler(store, RelabelSettings())
        with pytest.raises(ValueError, match="trajectories with goals"):
            store.goal_counts()
