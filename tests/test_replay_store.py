from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pytest
from test_replay_helpers import COUNTING_SPEC, counting_trajectory, same

from amago.replay import database
from amago.replay.store import TrajectoryStore
from amago.types import ActionSpec, ObsSpec, Trajectory


def episodes(start: int, stop: int, num_steps: int = 5) -> list[Trajectory]:
    return [counting_trajectory(0, episode, num_steps) for episode in range(start, stop)]


def open_store(path: Path, capacity: int = 100, **kwargs: Any) -> TrajectoryStore:
    return TrajectoryStore(path, COUNTING_SPEC, capacity, **kwargs)


def episode_of(trajectory: Trajectory) -> int:
    return int(trajectory.obs["count"][0, 1])


def test_what_was_appended_is_read_back_whole_and_in_windows(tmp_path: Path) -> None:
    originals = [counting_trajectory(lane, 3, 5 + lane) for lane in range(4)]
    with open_store(tmp_path) as store:
        store.append(originals[:3])
        store.append(originals[3:])
        assert store.window == (0, 4) and store.ids.tolist() == [0, 1, 2, 3]
        assert dict(store.lengths) == {0: 5, 1: 6, 2: 7, 3: 8} and store.num_steps == 26
        for trajectory_id, original in enumerate(originals):
            assert same(store.read(trajectory_id), original)
            window = store.read_window(trajectory_id, 2, 3)
            assert same(window.obs["count"], original.obs["count"][2:5])


def test_arrays_that_were_read_own_their_memory(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.append(episodes(0, 1))
        trajectory = store.read(0)
        window = store.read_window(0, 1, 2)
    for record in (trajectory, window):
        assert record.obs["count"].flags.owndata and record.prev_reward.flags.owndata
        record.prev_reward[0] = 7.0  # a view of the map could not be written to


def test_the_oldest_leave_the_window_but_stay_on_disk_until_evicted(tmp_path: Path) -> None:
    with open_store(tmp_path, capacity=3) as store:
        for episode in range(5):
            store.append(episodes(episode, episode + 1))
        assert store.window == (2, 5) and len(store) == 3 and store.num_steps == 15
        assert episode_of(store.read(0)) == 0
        store.evict()
        assert store.window == (2, 5) and list(store.lengths) == [2, 3, 4]
        with pytest.raises(ValueError, match="got 1; it may have been evicted"):
            store.read(1)
        assert [episode_of(store.read(i)) for i in store.ids.tolist()] == [2, 3, 4]


def test_protected_trajectories_stay_and_do_not_count(tmp_path: Path) -> None:
    demonstrations = [counting_trajectory(9, episode, 4) for episode in range(2)]
    with open_store(tmp_path, capacity=2) as store:
        store.append_protected(demonstrations[:1])
        store.append(episodes(0, 5))
        store.append_protected(demonstrations[1:])
        store.evict()
        assert store.window == (3, 5) and store.num_protected == 2 and len(store) == 4
    with open_store(tmp_path, capacity=2, window=(3, 5)) as store:
        assert store.ids.tolist() == [3, 4, -1, -2]
        assert same(store.read(-1), demonstrations[0]) and same(store.read(-2), demonstrations[1])
        assert store.num_steps == 5 + 5 + 4 + 4
    with open_store(tmp_path, capacity=2, window=(0, 0)) as store:
        assert store.ids.tolist() == [-1, -2]


def test_protected_trajectories_are_kept_all_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amago.replay.store._COMMIT", 2)
    good = [counting_trajectory(9, episode, 4) for episode in range(5)]
    bad = dataclasses.replace(good[0], prev_reward=good[0].prev_reward[:-1])
    with open_store(tmp_path, capacity=2) as store:
        store.append_protected(good[:1])
        with pytest.raises(ValueError, match="prev_reward"):
            store.append_protected([*good, bad])
        assert store.ids.tolist() == list(store.lengths) == [-1]
        store.append_protected(good)
        assert len(store) == 6 and same(store.read(-6), good[4])


def test_an_append_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    empty = counting_trajectory(0, 0, 0)
    with open_store(tmp_path) as store:
        store.append(episodes(0, 1))
        with pytest.raises(ValueError, match="at least 1 step"):
            store.append([*episodes(1, 3), empty])
        store.append([])
        assert store.window == (0, 1) and list(store.lengths) == [0]


def test_opening_again_finds_the_same_window(tmp_path: Path) -> None:
    with open_store(tmp_path, capacity=3) as store:
        store.append(episodes(0, 5))
    with open_store(tmp_path, capacity=3) as store:
        assert store.window == (2, 5)
        store.append(episodes(5, 6))
        assert [episode_of(store.read(i)) for i in store.ids.tolist()] == [3, 4, 5]
    with open_store(tmp_path, capacity=2) as store:
        assert store.window == (4, 6)
    with open_store(tmp_path, capacity=9) as store:
        assert store.window == (4, 6)


def test_a_larger_capacity_does_not_bring_back_what_left(tmp_path: Path) -> None:
    with open_store(tmp_path, capacity=2) as store:
        store.append(episodes(0, 6))
        store.evict()
    with open_store(tmp_path, capacity=9, window=(4, 6)) as store:
        store.append(episodes(6, 7))
        assert store.window == (4, 7) and store.num_steps == 15


def test_resuming_forgets_later_ids_and_writes_them_again(tmp_path: Path) -> None:
    with open_store(tmp_path, capacity=4) as store:
        store.append(episodes(0, 6))
        checkpoint = store.window
        store.append(episodes(6, 9))
    with open_store(tmp_path, capacity=4, window=checkpoint) as store:
        assert store.window == checkpoint == (2, 6) and max(store.lengths) == 5
        store.append([counting_trajectory(7, 6, 8)])
        assert store.window == (3, 7)
        assert same(store.read(6), counting_trajectory(7, 6, 8)) and store.lengths[6] == 8
        assert 7 not in store.lengths


def test_an_older_checkpoint_is_whole_as_long_as_nothing_was_evicted(tmp_path: Path) -> None:
    with open_store(tmp_path, capacity=2) as store:
        store.append(episodes(0, 6))
    with open_store(tmp_path, capacity=2, window=(1, 3)) as store:
        assert [episode_of(store.read(i)) for i in store.ids.tolist()] == [1, 2]


def test_resuming_without_all_of_the_window_is_an_error(tmp_path: Path) -> None:
    with open_store(tmp_path, capacity=2) as store:
        store.append(episodes(0, 6))
        store.evict()
    for window, message in (
        ((2, 6), r"window \[2, 6\).*2 missing, the first is 2.*amago resume .* --from EPOCH"),
        ((4, 8), "2 missing, the first is 6"),
        ((6, 4), r"window \[6, 4\)"),
    ):
        with pytest.raises(ValueError, match=message):
            open_store(tmp_path, capacity=2, window=window)
    with open_store(tmp_path, capacity=2) as store:  # a refused window changed nothing
        assert store.window == (4, 6) and list(store.lengths) == [4, 5]


def test_other_spaces_are_named_field_by_field(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    other = dataclasses.replace(
        COUNTING_SPEC,
        obs={"count": ObsSpec((3,), "float64"), "pixels": ObsSpec((8, 8), "uint8")},
        action=ActionSpec("discrete", 6),
    )
    with pytest.raises(ValueError) as caught:
        TrajectoryStore(tmp_path, other, 10)
    message = str(caught.value)
    assert "obs.count.dtype: expected float64, got float32" in message
    assert "obs.pixels.shape: expected [8, 8], got absent" in message
    assert "action.size: expected 6, got 4" in message
    assert "another path" in message and "kind: expected real, got real" not in message


def test_the_name_of_the_environment_does_not_matter(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    TrajectoryStore(tmp_path, dataclasses.replace(COUNTING_SPEC, name="b", horizon=9), 10).close()


def test_another_format_version_is_refused_by_writer_and_reader(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    with lmdb.open(str(tmp_path), max_dbs=8) as env, env.begin(write=True) as txn:
        txn.put(b"format", b"99", db=env.open_db(b"meta", txn=txn))
    with pytest.raises(ValueError, match="format 2, got format 99; use the amago version"):
        open_store(tmp_path)
    with pytest.raises(ValueError, match="format 99"):
        TrajectoryStore.open_readonly(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"obs": {"count": np.zeros((6, 2), np.float32)}}, r"count float32 \(3,\), got count"),
        ({"obs": {"count": np.zeros((6, 3), np.float64)}}, "got count float64"),
        ({"obs": {}}, "got none"),
        ({"prev_action": np.zeros((6, 4), np.uint8)}, r"discrete actions as uint8 \(\) per row"),
        ({"prev_action": np.zeros(6, np.int64)}, r"got int64 \(\)"),
    ],
)
def test_a_trajectory_of_another_environment_is_refused(
    tmp_path: Path, change: Any, message: str
) -> None:
    with open_store(tmp_path) as store, pytest.raises(ValueError, match=message):
        store.append([dataclasses.replace(counting_trajectory(0, 0, 5), **change)])


def test_the_map_grows_when_it_is_full(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(database, "_INITIAL_MAP_BYTES", 1 << 18)
    with open_store(tmp_path, capacity=1000) as store:
        for episode in range(0, 200, 20):
            store.append(episodes(episode, episode + 20, num_steps=300))
        assert (tmp_path / "data.mdb").stat().st_size > 1 << 20
        for trajectory_id in range(200):
            assert same(store.read(trajectory_id), counting_trajectory(0, trajectory_id, 300))


def test_the_file_stops_growing_once_the_window_is_full(tmp_path: Path) -> None:
    sizes = []
    with open_store(tmp_path, capacity=20) as store:
        for episode in range(0, 400, 4):
            store.append(episodes(episode, episode + 4, num_steps=300))
            store.evict()
            sizes.append((tmp_path / "data.mdb").stat().st_size)
    assert sizes[-1] == sizes[20], "freed pages are not used again"
    assert sizes[-1] < 3 * 20 * 301 * 22


def test_sync_and_close_can_be_repeated_and_use_after_close_is_an_error(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.append(episodes(0, 1))
    store.sync()
    store.close()
    store.close()
    for use in (lambda: store.read(0), lambda: store.append(episodes(1, 2)), store.sync):
        with pytest.raises(RuntimeError, match="closed; open it again"):
            use()


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match="to be a directory"):
            open_store(path)
    (tmp_path / "garbage").mkdir()
    (tmp_path / "garbage" / "data.mdb").write_bytes(b"no database" * 1000)
    with pytest.raises(ValueError, match="this is no file of LMDB"):
        open_store(tmp_path / "garbage")


def test_reading_a_store_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no data\.mdb there"):
        TrajectoryStore.open_readonly(tmp_path)
    lmdb.open(str(tmp_path)).close()
    with pytest.raises(ValueError, match="another or an unfinished LMDB"):
        TrajectoryStore.open_readonly(tmp_path)


def test_capacity_below_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 1 trajectory, got 0"):
        open_store(tmp_path, capacity=0)
