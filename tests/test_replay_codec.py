from __future__ import annotations

import dataclasses
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from test_replay_helpers import counting_trajectory, same

from amago.replay.codec import decode, encode, own
from amago.replay.window import cut
from amago.types import Trajectory

DTYPES = ("float32", "float64", "uint8", "int64", "bool", "float16", ">i4")


@st.composite
def trajectories(draw: Any) -> Trajectory:
    rows = draw(st.integers(2, 9))

    def array(*shape: int, dtype: str) -> Any:
        return draw(hnp.arrays(dtype, shape))

    def inner() -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(0, 3), max_size=3)))

    keys = draw(st.lists(st.text(max_size=4), max_size=3, unique=True))
    counts = draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    goal_size = draw(st.integers(1, 3))
    return Trajectory(
        obs={key: array(rows, *inner(), dtype=draw(st.sampled_from(DTYPES))) for key in keys},
        prev_action=array(rows, 3, dtype=draw(st.sampled_from(("uint8", "float32")))),
        prev_reward=array(rows, dtype="float32"),
        first=array(rows, dtype="bool"),
        terminal=array(rows, dtype="bool"),
        world_seed=draw(st.integers(0, 2**63 - 1)),
        task=draw(st.text(max_size=5)),
        instruction=draw(st.none() | hnp.arrays("int64", (2, goal_size))),
        progress=draw(st.none() | hnp.arrays("int32", rows)),
        achieved=draw(
            st.none()
            | st.just((offsets, np.arange(offsets[-1] * goal_size).reshape(-1, goal_size)))
        ),
    )


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trajectories())
def test_decoding_gives_back_every_field_bit_for_bit(trajectory: Trajectory) -> None:
    assert same(decode(encode(trajectory)), trajectory)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trajectories(), st.data())
def test_decoding_a_window_equals_slicing_the_whole(trajectory: Trajectory, data: Any) -> None:
    rows = trajectory.num_steps + 1
    start = data.draw(st.integers(0, rows - 1))
    stop = data.draw(st.integers(start + 1, rows))
    window = decode(encode(trajectory), start, stop)
    assert same(window, cut(trajectory, start, stop))
    assert all(same(window.obs[key], trajectory.obs[key][start:stop]) for key in trajectory.obs)
    assert same(window.prev_reward, trajectory.prev_reward[start:stop])
    assert same(window.instruction, trajectory.instruction)
    if trajectory.achieved is not None and window.achieved is not None:
        (offsets, goals), (all_offsets, all_goals) = window.achieved, trajectory.achieved
        for row in range(stop - start):
            mine = goals[offsets[row] : offsets[row + 1]]
            assert same(mine, all_goals[all_offsets[start + row] : all_offsets[start + row + 1]])


def test_decoding_copies_nothing_and_owning_copies_everything() -> None:
    record = bytearray(encode(counting_trajectory(1, 2, 5)))
    views = decode(memoryview(record))
    copies = own(views)
    record[-6] ^= 1  # the first of the six terminal flags, which come last
    assert views.terminal[0] and not copies.terminal[0]
    assert np.shares_memory(views.obs["count"], np.frombuffer(record, np.uint8))


def test_arrays_are_aligned_within_the_record() -> None:
    record = np.frombuffer(encode(counting_trajectory(1, 2, 5)), np.uint8)
    views = decode(record.data)
    for array in (*views.obs.values(), views.prev_action, views.prev_reward, views.terminal):
        assert (array.ctypes.data - record.ctypes.data) % 16 == 0


def test_strided_arrays_are_stored_as_their_values() -> None:
    trajectory = counting_trajectory(1, 2, 8)
    strided = dataclasses.replace(trajectory, obs={"count": trajectory.obs["count"][:, ::-1]})
    assert same(decode(encode(strided)).obs["count"], strided.obs["count"])


def test_a_truncated_record_is_refused_at_every_length() -> None:
    record = encode(counting_trajectory(1, 2, 3))
    for size in range(len(record)):
        with pytest.raises(ValueError, match="truncated"):
            decode(record[:size])


def test_any_flipped_bit_before_the_arrays_is_refused() -> None:
    record = encode(counting_trajectory(1, 2, 3))
    header_size = struct.unpack_from("<4sHxxI", record)[2]
    unused = {6, 7}
    for position in set(range(24 + header_size)) - unused:
        garbled = bytearray(record)
        garbled[position] ^= 4
        with pytest.raises(ValueError, match="expected"):
            decode(bytes(garbled))


def test_a_record_of_another_format_is_refused_by_number() -> None:
    record = bytearray(encode(counting_trajectory(1, 2, 3)))
    record[4] = 7
    with pytest.raises(ValueError, match="format 4, got format 7"):
        decode(bytes(record))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": np.zeros(3, bool)}, "4 rows in 'first'"),
        ({"obs": {"count": np.zeros((5, 3))}}, "4 rows in 'obs/count'"),
        ({"obs": {"name": np.array(["a"] * 4)}}, "numbers or flags in 'obs/name'"),
        ({"achieved": (np.array([0, 1, 0, 1, 1]), np.zeros((1, 2)))}, "ascending offsets"),
        ({"achieved": (np.array([0, 0, 0, 1]), np.zeros((1, 2)))}, "5 ascending offsets"),
        ({"achieved": (np.array([0, 0, 0, 1, 3]), np.zeros((1, 2)))}, "from 0 to 1"),
    ],
)
def test_a_trajectory_whose_arrays_disagree_is_not_encoded(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode(dataclasses.replace(counting_trajectory(1, 2, 3), **change))


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (2, 2), (0, 7), (6, 7)])
def test_a_window_outside_the_trajectory_is_refused(start: int, stop: int) -> None:
    with pytest.raises(ValueError, match="0 <= start < stop <= 6"):
        decode(encode(counting_trajectory(1, 2, 5)), start, stop)
