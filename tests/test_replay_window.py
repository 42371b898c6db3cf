from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from test_replay_helpers import counting_trajectory, same

from amago.replay.collate import collate
from amago.replay.window import cut, draw_window


@pytest.mark.parametrize(
    ("num_steps", "context_length", "starts", "rows"),
    [(10, 4, range(7), 5), (4, 4, range(1), 5), (3, 4, range(1), 4), (5, 4, range(2), 5)],
)
def test_windows_reach_every_start_and_never_leave_the_trajectory(
    num_steps: int, context_length: int, starts: range, rows: int
) -> None:
    rng = np.random.default_rng(0)
    drawn = {draw_window(num_steps, context_length, rng) for _ in range(300)}
    assert drawn == {(start, rows) for start in starts}
    assert max(starts) + rows == num_steps + 1, "the last row must be reachable"


def test_no_transition_is_seen_less_often_than_the_others() -> None:
    num_steps, context_length, draws = 29, 10, 20_000
    rng = np.random.default_rng(1)
    seen = np.zeros(num_steps)
    for _ in range(draws):
        start, rows = draw_window(num_steps, context_length, rng)
        seen[start : start + rows - 1] += 1
    # Every transition is inside L of the T+L-1 starts that are drawn, before those are moved.
    least = context_length / (num_steps + context_length - 1)
    deviation = np.sqrt(least * (1 - least) / draws)
    assert (seen / draws > least - 4 * deviation).all()
    assert abs(seen[-1] / draws - least) < 4 * deviation, "the end"
    assert abs(seen[0] / draws - least) < 4 * deviation, "the beginning"


def test_collating_joins_windows_from_long_to_short_and_says_where_they_end() -> None:
    long, short = counting_trajectory(1, 0, 9), counting_trajectory(2, 0, 2)
    batch = collate([short, cut(long, 3, 8)], [0, 3])
    assert batch.lengths == (5, 3) and len(batch) == 8
    assert batch.time.tolist() == [3, 4, 5, 6, 7, 0, 1, 2]
    assert same(batch.obs["count"][:5], long.obs["count"][3:8])
    assert same(batch.obs["count"][5:], short.obs["count"])
    assert batch.terminal.tolist() == [False] * 7 + [True]
    assert batch.first.tolist() == [False] * 5 + [True, False, False]
    assert batch.prev_action.tolist() == [2, 3, 0, 1, 2, 0, 0, 1]
    assert batch.prev_action.dtype == torch.int64 and batch.prev_reward.dtype == torch.float32


def test_windows_of_one_length_keep_their_order() -> None:
    windows = [counting_trajectory(lane, 0, 3) for lane in (4, 2, 3)]
    batch = collate(windows, [0, 0, 0])
    assert batch.obs["count"][::4, 0].tolist() == [4, 2, 3]


def test_vectors_of_actions_stay_real_numbers() -> None:
    vectors = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)
    batch = collate([replace(counting_trajectory(1, 0, 3), prev_action=vectors)], [0])
    assert same(batch.prev_action, vectors)


def test_observations_keep_their_dtype() -> None:
    trajectory = counting_trajectory(1, 0, 3)
    trajectory.obs["pixels"] = np.full((4, 2, 2), 255, np.uint8)
    trajectory.obs["id"] = np.arange(4, dtype=">i8")
    batch = collate([trajectory], [0])
    assert batch.obs["pixels"].dtype == torch.uint8 and batch.obs["pixels"].min() == 255
    assert batch.obs["id"].tolist() == [0, 1, 2, 3]


def test_windows_of_other_keys_shapes_or_dtypes_do_not_collate() -> None:
    other = counting_trajectory(1, 0, 3)
    for wrong in ({}, {"count": np.zeros((4, 1), np.float32)}, {"count": np.zeros((4, 3))}):
        windows = [counting_trajectory(1, 0, 3), counting_trajectory(1, 0, 3)]
        windows[1].obs.clear()
        windows[1].obs.update(wrong)
        with pytest.raises(ValueError, match="per row of 'count' in every window"):
            collate(windows, [0, 0])
    with pytest.raises(ValueError, match="1 windows and 2 starts"):
        collate([other], [0, 0])


def test_no_torch_is_loaded_by_codec_store_and_window() -> None:
    import subprocess
    import sys
    from pathlib import Path

    import amago

    code = "import sys, amago.replay.store, amago.replay.window; sys.exit('torch' in sys.modules)"
    root = Path(amago.__file__).parents[1]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
