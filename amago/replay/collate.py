"""Windows of trajectories become one padded Batch of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from amago.goals import pad
from amago.types import Array, Batch, Trajectory


def collate(
    windows: Sequence[Trajectory],
    starts: Sequence[int],
    num_rows: int | None = None,
    max_goals: int | None = None,
) -> Batch:
    """Windows [rows, ...] that begin at `starts`, right-padded with zeros to [B, R, ...].

    R is `num_rows`, or the longest window where unset; `time` counts from each start.
    Instructions have `max_goals` slots, and are left out where that is unset.
    """
    lengths = np.array([len(window.prev_reward) for window in windows])
    if len(lengths) == 0 or len(starts) != len(lengths):
        raise ValueError(
            f"expected one start for each of at least 1 window, got {len(lengths)} windows and "
            f"{len(starts)} starts; pass what draw_window returned"
        )
    rows = int(lengths.max()) if num_rows is None else num_rows
    if lengths.max() > rows:
        raise ValueError(
            f"expected windows of at most {rows} rows, got one of {lengths.max()}; "
            "cut it to context_length + 1 rows"
        )
    steps = np.arange(rows)
    valid = steps < lengths[:, None]
    return Batch(
        obs={key: _pad([w.obs.get(key) for w in windows], rows, key) for key in windows[0].obs},
        prev_action=_pad([w.prev_action for w in windows], rows, "prev_action", "float32"),
        prev_reward=_pad([w.prev_reward for w in windows], rows, "prev_reward", "float32"),
        time=torch.from_numpy((np.asarray(starts, np.int64)[:, None] + steps) * valid),
        first=_pad([w.first for w in windows], rows, "first", "bool"),
        terminal=_pad([w.terminal for w in windows], rows, "terminal", "bool"),
        valid=torch.from_numpy(valid),
        **({} if max_goals is None else _instructions(windows, rows, max_goals)),
    )


def _instructions(
    windows: Sequence[Trajectory], rows: int, max_goals: int
) -> dict[str, torch.Tensor]:
    given = [window.instruction for window in windows if window.instruction is not None]
    if len(given) < len(windows):
        raise ValueError(
            f"expected an instruction in all {len(windows)} windows of a batch, got {len(given)}; "
            "make the transform keep them"
        )
    instruction, num_goals = pad(given, max_goals)
    return {
        "instruction": torch.from_numpy(instruction.astype(np.float32)),
        "num_goals": torch.from_numpy(num_goals),
        "progress": _pad([window.progress for window in windows], rows, "progress", "int64"),
    }


def _pad(
    arrays: Sequence[Array | None], rows: int, name: str, dtype: str | None = None
) -> torch.Tensor:
    head = arrays[0]
    assert head is not None
    padded = np.zeros((len(arrays), rows, *head.shape[1:]), dtype or head.dtype.newbyteorder("="))
    for row, array in zip(padded, arrays, strict=True):
        # An assignment would silently broadcast a narrower array, or cast another dtype.
        if array is None or array.shape[1:] != head.shape[1:] or array.dtype != head.dtype:
            received = "nothing" if array is None else f"{array.dtype} {array.shape[1:]}"
            raise ValueError(
                f"expected {head.dtype} {head.shape[1:]} per row of {name!r} in every window of "
                f"a batch, got {received}; make the transform keep keys, shapes and dtypes"
            )
        row[: len(array)] = array
    return torch.from_numpy(padded)
