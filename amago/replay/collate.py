"""Windows of trajectories become one Batch of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from amago.goals import pad
from amago.types import Array, Batch, Trajectory


def collate(
    windows: Sequence[Trajectory], starts: Sequence[int], max_goals: int | None = None
) -> Batch:
    """Windows [rows, ...] that begin at `starts`, end to end, from the longest to the shortest.

    `time` counts from each start. Instructions have `max_goals` slots, and are left out where
    that is unset.
    """
    if not windows or len(starts) != len(windows):
        raise ValueError(
            f"expected one start for each of at least 1 window, got {len(windows)} windows and "
            f"{len(starts)} starts; pass what draw_window returned"
        )
    pairs = zip(windows, starts, strict=True)
    ordered = sorted(pairs, key=lambda pair: -len(pair[0].prev_reward))
    windows = [window for window, _ in ordered]
    lengths = tuple(len(window.prev_reward) for window in windows)
    times = [np.arange(start, start + n) for (_, start), n in zip(ordered, lengths, strict=True)]
    ids = windows[0].prev_action.dtype.kind != "f"
    return Batch(
        obs={key: _join([w.obs.get(key) for w in windows], key) for key in windows[0].obs},
        prev_action=_join(
            [w.prev_action for w in windows], "prev_action", "int64" if ids else "float32"
        ),
        prev_reward=_join([w.prev_reward for w in windows], "prev_reward", "float32"),
        time=torch.from_numpy(np.concatenate(times)),
        first=_join([w.first for w in windows], "first", "bool"),
        terminal=_join([w.terminal for w in windows], "terminal", "bool"),
        lengths=lengths,
        **({} if max_goals is None else _instructions(windows, max_goals)),
    )


def _instructions(windows: Sequence[Trajectory], max_goals: int) -> dict[str, torch.Tensor]:
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
        "progress": _join([window.progress for window in windows], "progress", "int64"),
    }


def _join(arrays: Sequence[Array | None], name: str, dtype: str | None = None) -> torch.Tensor:
    """Arrays of the same rows end to end, in the native byte order."""
    head = arrays[0]
    assert head is not None
    rows: list[Array] = []
    for array in arrays:
        # Joining would silently cast another dtype.
        if array is None or array.shape[1:] != head.shape[1:] or array.dtype != head.dtype:
            received = "nothing" if array is None else f"{array.dtype} {array.shape[1:]}"
            raise ValueError(
                f"expected {head.dtype} {head.shape[1:]} per row of {name!r} in every window of "
                f"a batch, got {received}; make the transform keep keys, shapes and dtypes"
            )
        rows.append(array)
    joined = np.concatenate(rows, dtype=dtype or head.dtype.newbyteorder("="))
    return torch.from_numpy(joined)
