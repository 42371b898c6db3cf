"""What a Dark Key-To-Door agent makes of what it has found out about its grid.

    python benchmarks/key_door_memory.py RUN [--rollouts 200]

Plays new grids. Legs of a trial (start to key, key to door) are counted apart by whether the
rollout had been at their end before, and compared with the shortest ways; new cells are counted
where the end of the leg was not yet known.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from playing import parse, play_observed, worlds

from amago.envs.domains.dark_key_to_door import _MOVES, DarkKeyToDoor
from amago.types import Array


class Grid:
    """What one rollout has shown so far, and the leg that it is on."""

    def __init__(self) -> None:
        self.seen: set[tuple[int, int]] = set()
        self.key_found = self.door_found = self.had_key = False
        self.begin: tuple[int, int] = (0, 0)
        self.steps = 0
        self.trial_time = -1


def main() -> None:
    run, rollouts = parse(__doc__)
    env = worlds(run, rollouts)
    task = env.task
    assert isinstance(task, DarkKeyToDoor)
    grids = [Grid() for _ in range(rollouts)]
    legs: dict[str, list[tuple[int, int]]] = defaultdict(list)
    unfinished: dict[str, int] = defaultdict(int)
    moves: dict[str, list[bool]] = defaultdict(list)

    def kind(grid: Grid, has_key: bool) -> str:
        if has_key:
            return "key to door, " + ("known" if grid.door_found else "new")
        return "start to key, " + ("known" if grid.key_found else "new")

    def look(lanes: Array, action: Array) -> None:
        for lane in lanes.tolist():
            grid = grids[lane]
            at, has_key = tuple(task.position[lane].tolist()), bool(task.has_key[lane])
            if task.trial_time[lane] == 0 and grid.trial_time > 0:
                unfinished[kind(grid, grid.had_key)] += 1
            if task.trial_time[lane] == 0 or (has_key and not grid.had_key):
                grid.begin, grid.steps = at, 0
            grid.trial_time, grid.had_key = int(task.trial_time[lane]), has_key
            grid.seen.add((has_key, *at))
            after = np.clip(task.position[lane] + _MOVES[action[lane]], 0, task.grid - 1)
            name, goal = kind(grid, has_key), task.door[lane] if has_key else task.key[lane]
            if name.endswith("new"):
                new = (has_key, *after.tolist()) not in grid.seen
                moves[name + ": steps to new cells"].append(new)
            else:
                closer = np.abs(after - goal).sum() < np.abs(np.array(at) - goal).sum()
                moves[name + ": steps towards it"].append(bool(closer))
            grid.steps += 1
            if (after == goal).all():
                best = max(1, int(np.abs(np.array(grid.begin) - goal).sum()))
                legs[name].append((grid.steps, best))
                if has_key:
                    grid.door_found, grid.trial_time = True, -1
                else:
                    grid.key_found = True

    play_observed(run, env, look)
    for name, values in sorted(legs.items()):
        taken, best = np.array(values).T
        print(f"{name}: {len(values)} legs, {taken.mean():.1f} steps (shortest {best.mean():.1f}), "
              f"{unfinished[name]} cut by the trial's limit")  # fmt: skip
    for name, flags in sorted(moves.items()):
        print(f"{name}: {np.mean(flags):.0%} of {len(flags)}")


if __name__ == "__main__":
    main()
