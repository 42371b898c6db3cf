"""Windows: which rows of a trajectory a batch shows, and the cut itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from amago.types import Array, Trajectory


def draw_window(num_steps: int, context_length: int, rng: np.random.Generator) -> tuple[int, int]:
    """(start, rows) of a window of up to L transitions inside a trajectory of T.

    The start is uniform in -(L-1)..T-1 and then moved inside, so that a transition at an end
    is seen at least as often as the others. With a start uniform in 0..T-L the last one would be
    in one window of T-L+1, and a critic would hardly ever see how a long episode ended.
    """
    start = int(rng.integers(1 - context_length, num_steps))
    last = max(num_steps - context_length, 0)
    return min(max(start, 0), last), min(num_steps, context_length) + 1


def cut(trajectory: Trajectory, start: int, stop: int) -> Trajectory:
    """Rows start..stop-1 of a trajectory, as views; the instruction stays whole."""
    num_rows = trajectory.num_steps + 1
    if not 0 <= start < stop <= num_rows:
        raise ValueError(
            f"expected rows 0 <= start < stop <= {num_rows}, got {start}..{stop}; "
            "draw them with draw_window"
        )
    rows = slice(start, stop)
    return replace(
        trajectory,
        obs={key: value[rows] for key, value in trajectory.obs.items()},
        prev_action=trajectory.prev_action[rows],
        prev_reward=trajectory.prev_reward[rows],
        first=trajectory.first[rows],
        terminal=trajectory.terminal[rows],
        progress=None if trajectory.progress is None else trajectory.progress[rows],
        achieved=None if trajectory.achieved is None else _cut_goals(*trajectory.achieved, rows),
    )


def _cut_goals(offsets: Array, goals: Array, rows: slice) -> tuple[Array, Array]:
    edges = offsets[rows.start : rows.stop + 1]
    return edges - edges[0], goals[int(edges[0]) : int(edges[-1])]
