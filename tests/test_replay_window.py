from __future__ import annotations

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


def test_collating_pads_on_the_right_with_zeros_and_says_what_is_valid() -> None:
    long, short = counting_trajectory(1, 0, 9), counting_trajectory(2, 0, 2)
    batch = collate([cut(long, 3, 8), short], [3, 0])
    assert batch.valid.tolist() == [[True] * 5, [True] * 3 + [False] * 2]
    assert batch.time.tolist() == [[3, 4, 5, 6, 7], [0, 1, 2, 0, 0]]
    assert same(batch.obs["count"][0], long.obs["count"][3:8])
    assert same(batch.obs["count"][1, :3], short.obs["count"])
    assert batch.terminal.tolist()[1] == [False, False, True, False, False]
    assert batch.first.tolist()[1] == [True, False, False, False, False]
    for array in (batch.obs["count"], batch.prev_action, batch.prev_reward):
        assert array.dtype == torch.float32 and not array[1, 3:].any()
    assert batch.prev_action[1, 1].tolist() == [1, 0, 0, 0]


def test_collating_to_full_length_only_adds_padding() -> None:
    windows = [counting_trajectory(1, 0, 3), counting_trajectory(2, 0, 2)]
    tight, full = collate(windows, [0, 0]), collate(windows, [0, 0], num_rows=9)
    assert full.valid.shape == (2, 9) and not full.valid[:, 4:].any()
    assert same(full.obs["count"][:, :4], tight.obs["count"])
    assert not full.obs["count"][:, 4:].any() and not full.time[:, 4:].any()
    with pytest.raises(ValueError, match="at most 3 rows, got one of 4"):
        collate(windows, [0, 0], num_rows=3)


def test_observations_keep_their_dtype() -> None:
    trajectory = counting_trajectory(1, 0, 3)
    trajectory.obs["pixels"] = np.full((4, 2, 2), 255, np.uint8)
    trajectory.obs["id"] = np.arange(4, dtype=">i8")
    batch = collate([trajectory], [0])
    assert batch.obs["pixels"].dtype == torch.uint8 and batch.obs["pixels"].min() == 255
    assert batch.obs["id"].tolist() == [[0, 1, 2, 3]]


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
