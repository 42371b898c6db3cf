"""How well a MazeRunner agent finds its ways, against the shortest ones.

    python benchmarks/maze_steps.py RUN [--rollouts 200]

Plays new mazes. Of those that were solved it compares the steps with the oracle's, which knows
the maze; of the others it counts how many cells were still visited near the end.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from playing import parse, play_observed, worlds

from amago.envs.domains.maze_runner.task import MazeRunner
from amago.types import Array

LAST = 50
"""Steps at the end of a rollout whose cells are counted."""


def report(run: Path, rollouts: int) -> list[str]:
    env = worlds(run, rollouts)
    task = env.task
    assert isinstance(task, MazeRunner)
    shortest = np.zeros(rollouts, np.int64)
    paths: list[list[tuple[int, int]]] = [[] for _ in range(rollouts)]

    def look(lanes: Array, action: Array) -> None:
        for lane in lanes.tolist():
            if not paths[lane]:
                shortest[lane] = task.best_steps(lane)[-1]
            x, y = task.position[lane].tolist()
            paths[lane].append((x, y))

    records = play_observed(run, env, look)
    success = np.array([record.success for record in records])
    steps = np.array([record.length for record in records])
    lines = [f"success {success.mean():.1%} of {rollouts}"]
    if success.any():
        taken, least = steps[success], shortest[success]
        lines.append(
            f"solved: {taken.mean():.1f} steps, the oracle {least.mean():.1f}; "
            f"ratio, quartiles: {_quartiles(taken / least, '.2f')}"
        )
    if not success.all():
        cells = np.array([len(set(paths[lane][-LAST:])) for lane in np.flatnonzero(~success)])
        lines.append(
            f"not solved: cells visited in the last {LAST} steps, quartiles: "
            f"{_quartiles(cells, '.0f')}; the oracle {shortest[~success].mean():.1f} steps"
        )
    return lines


def _quartiles(values: Array, form: str) -> str:
    return " ".join(f"{value:{form}}" for value in np.percentile(values, (25, 50, 75)))


if __name__ == "__main__":
    print("\n".join(report(*parse(__doc__))))
