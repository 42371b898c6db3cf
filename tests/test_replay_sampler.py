from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from test_replay_helpers import COUNTING_SPEC, counting_trajectory, same, sequences

from amago.replay.sampler import Sampler
from amago.replay.store import TrajectoryStore
from amago.types import Trajectory


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TrajectoryStore]:
    with TrajectoryStore(tmp_path, COUNTING_SPEC, 100) as store:
        store.append([counting_trajectory(lane, 7, 4 + 3 * lane) for lane in range(8)])
        store.append_protected([counting_trajectory(50, 7, 12)])
        yield store


def sampler_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "amago-sampler" in thread.name]


@pytest.mark.parametrize("transform", [None, lambda trajectory, rng: trajectory])
def test_every_row_of_a_batch_is_the_row_it_claims_to_be(store, transform) -> None:
    sampler = Sampler(store, 16, context_length=6, seed=3, transform=transform)
    for update in range(20):
        batch = sampler.batch(update)
        assert len(batch.lengths) == 16 and sum(batch.lengths) == len(batch)
        assert list(batch.lengths) == sorted(batch.lengths, reverse=True)
        for part in sequences(batch):
            lane = int(part.obs["count"][0, 0])
            original = counting_trajectory(lane, 7, 12 if lane == 50 else 4 + 3 * lane)
            time = part.time.numpy()
            assert len(time) == min(original.num_steps, 6) + 1 and time[-1] <= original.num_steps
            assert (np.diff(time) == 1).all()
            assert same(part.obs["count"], original.obs["count"][time])
            assert same(part.prev_reward, original.prev_reward[time])
            assert same(part.first, original.first[time])
            assert same(part.terminal, original.terminal[time])
            assert same(part.prev_action, original.prev_action[time].astype(np.int64))


def test_shifted_views_are_the_action_reward_and_end_of_each_transition(store) -> None:
    batch = Sampler(store, 32, context_length=6, seed=3).batch(0)
    ends = 0
    for part in sequences(batch):
        lane, _, step = part.obs["count"][:-1].T
        assert (part.prev_action[1:] == step % 4).all()
        assert (part.prev_reward[1:] == step + 1).all()
        final = (lane == 50) * 12 + (lane < 50) * (4 + 3 * lane)
        assert (part.terminal[1:] == (step + 1 == final)).all()
        ends += int(part.terminal[1:].sum())
    assert ends > 0


@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_batches_are_the_same_in_order_whatever_the_prefetch(store, prefetch: int) -> None:
    sampler = Sampler(store, 4, context_length=6, seed=3)
    expected = [sampler.batch(update) for update in range(5, 16)]
    received = list(sampler.batches(5, 16, prefetch))
    assert len(received) == 11 and all(map(same, received, expected))
    assert not same(expected[0], expected[1]) and not sampler_threads()


def test_batches_are_the_same_after_opening_the_store_again(tmp_path: Path) -> None:
    def batches(**kwargs: tuple[int, int]) -> tuple[list[object], tuple[int, int]]:
        with TrajectoryStore(tmp_path, COUNTING_SPEC, 6, **kwargs) as store:
            if store.window == (0, 0):
                store.append([counting_trajectory(0, episode, 9) for episode in range(8)])
            window = store.window
            made = list(Sampler(store, 4, 5, seed=1).batches(0, 5, 1))
            store.append([counting_trajectory(9, 9, 9)])
            assert not all(map(same, made, Sampler(store, 4, 5, seed=1).batches(0, 5, 1)))
            return made, window

    first, window = batches()
    again, _ = batches(window=window)
    assert all(map(same, first, again))
    with TrajectoryStore(tmp_path, COUNTING_SPEC, 6, window=window) as store:
        assert not same(first[0], Sampler(store, 4, 5, seed=2).batch(0))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_what_is_appended_while_iterating_does_not_change_the_batches(store, prefetch) -> None:
    sampler = Sampler(store, 4, context_length=6, seed=3)
    expected = [sampler.batch(update) for update in range(6)]
    iterator = sampler.batches(0, 6, prefetch)
    received = []
    for batch in iterator:
        store.append([counting_trajectory(60, 7, 5)] * 30)
        received.append(batch)
    assert store.window[0] > 8 and all(map(same, received, expected)) and len(received) == 6


def test_trajectories_are_drawn_uniformly_protected_ones_included(store) -> None:
    sampler = Sampler(store, 100, context_length=6, seed=5)
    lanes = np.concatenate(
        [part.obs["count"][:1, 0] for b in sampler.batches(0, 45) for part in sequences(b)]
    )
    values, counts = np.unique(lanes, return_counts=True)
    assert values.tolist() == [*range(8), 50]
    assert ((counts - 500.0) ** 2 / 500.0).sum() < 26.1  # 99.9 % quantile, 8 degrees of freedom


def test_window_starts_are_uniform_over_a_trajectory_and_ends_take_what_would_stick_out(
    tmp_path: Path,
) -> None:
    with TrajectoryStore(tmp_path, COUNTING_SPEC, 10) as store:
        store.append([counting_trajectory(0, 0, 19)])
        sampler = Sampler(store, 100, context_length=10, seed=5)
        batches = sampler.batches(0, 40)
        starts = np.array([int(part.time[0]) for b in batches for part in sequences(b)])
    counts = np.bincount(starts, minlength=10)
    # Of the 28 starts -9..18, ten are moved to 0 and ten to 9.
    expected = 4000 / 28 * np.array([10] + [1] * 8 + [10])
    assert len(counts) == 10
    assert ((counts - expected) ** 2 / expected).sum() < 27.9  # 99.9 %, 9 degrees of freedom


def test_the_transform_sees_whole_trajectories_and_its_result_is_what_is_cut(store) -> None:
    seen: list[int] = []

    def shorten(trajectory: Trajectory, rng: np.random.Generator) -> Trajectory:
        seen.append(trajectory.num_steps)
        reward = np.full(3, rng.random(), np.float32)
        return dataclasses.replace(
            trajectory,
            obs={"count": trajectory.obs["count"][:3]},
            prev_action=trajectory.prev_action[:3],
            prev_reward=reward,
            first=trajectory.first[:3],
            terminal=np.array([False, False, True]),
        )

    sampler = Sampler(store, 6, 6, seed=3, transform=shorten)
    batches = list(sampler.batches(0, 4, prefetch=2))
    assert {*seen} <= {4 + 3 * lane for lane in range(8)} | {12} and len(seen) == 24
    assert all(batch.lengths == (3,) * 6 and batch.terminal[2::3].all() for batch in batches)
    assert all(map(same, batches, sampler.batches(0, 4)))
    assert len(np.unique(np.concatenate([batch.prev_reward for batch in batches]))) == 24


@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_an_error_while_preparing_reaches_the_consumer_at_its_batch(store, prefetch) -> None:
    def fail(trajectory: Trajectory, rng: np.random.Generator) -> Trajectory:
        calls.append(1)
        if len(calls) == 5:
            raise ArithmeticError("relabeling failed")
        return trajectory

    calls: list[int] = []
    received = []
    with pytest.raises(ArithmeticError, match="relabeling failed"):
        for batch in Sampler(store, 2, 6, seed=3, transform=fail).batches(0, 10, prefetch):
            received.append(batch)
    assert len(received) == 2 and not sampler_threads()


def test_leaving_early_stops_the_thread_and_the_work(store) -> None:
    def count(trajectory: Trajectory, rng: np.random.Generator) -> Trajectory:
        calls.append(1)
        return trajectory

    calls: list[int] = []
    iterator = Sampler(store, 2, 6, seed=3, transform=count).batches(0, 10_000, 3)
    next(iterator)
    assert sampler_threads()
    iterator.close()
    assert not sampler_threads() and len(calls) <= 2 * 4


def test_sampling_from_an_empty_store_says_what_to_do(tmp_path: Path) -> None:
    with TrajectoryStore(tmp_path, COUNTING_SPEC, 10) as store:
        sampler = Sampler(store, 2, 6, seed=3)
        for sample in (lambda: sampler.batch(0), lambda: sampler.batches(0, 1, 2)):
            with pytest.raises(ValueError, match="empty store; collect before learning"):
                sample()


def test_settings_out_of_range_are_refused(store) -> None:
    for bad in ({"batch_size": 0}, {"context_length": 0}, {"seed": -1}):
        arguments = {"batch_size": 2, "context_length": 3, "seed": 0} | bad
        with pytest.raises(ValueError, match=f"expected {next(iter(bad))} of at least"):
            Sampler(store, **arguments)
    with pytest.raises(ValueError, match="prefetch of 0 or more"):
        Sampler(store, 2, 3, 0).batches(0, 1, -1)


@pytest.mark.parametrize("context_length", [6, 100])
def test_a_batch_counted_in_rows_has_as_many_windows_as_hold_them(store, context_length) -> None:
    lengths = np.array([*range(4, 28, 3), 12])
    sampler = Sampler(store, 16, context_length, seed=3, batch_rows=1_000)
    covering = np.maximum(1.0, lengths / context_length).sum()
    windows = math.ceil(1_000 * covering / lengths.sum())
    batches = [sampler.batch(update) for update in range(20)]
    transitions = [sum(batch.lengths) - len(batch.lengths) for batch in batches]
    assert {len(batch.lengths) for batch in batches} == {windows}
    assert np.mean(transitions) == pytest.approx(1_000, rel=0.05)


def test_a_batch_counted_in_rows_shows_every_stored_row_equally_often(store) -> None:
    """Windows of 6: a trajectory of 25 steps is drawn four times as often as one of 4."""
    lengths = {i: store.lengths[i] for i in store.ids.tolist()}
    sampler = Sampler(store, 16, context_length=6, seed=5, batch_rows=4_000)
    drawn = dict.fromkeys(lengths, 0)
    for update in range(20):
        for pick in sampler._snapshot().draw(np.random.default_rng((5, update))):
            drawn[pick] += min(lengths[pick], 6)
    shown = np.array([drawn[i] / steps for i, steps in lengths.items()])
    assert shown == pytest.approx(shown.mean(), rel=0.1)
