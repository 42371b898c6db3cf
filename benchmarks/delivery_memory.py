"""What a Package Delivery agent makes of what it has found out about its road.

    python benchmarks/delivery_memory.py RUN [--rollouts 200]

Plays new roads and counts how often forks and drops were right, apart for those whose answer the
same rollout had shown before and for those where it could only be guessed.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from playing import parse, play_observed, worlds

from amago.envs.domains.package_delivery import DROPS, LEFT, RIGHT, PackageDelivery
from amago.types import Array


class Known:
    """What one rollout has shown so far: forks that were tried, and drops that failed or worked."""

    def __init__(self) -> None:
        self.forks: set[int] = set()
        self.failed: set[int] = set()
        self.worked: int | None = None

    def judge(self, task: PackageDelivery, lane: int, action: int) -> tuple[str, bool] | None:
        """What kind of decision this action is, and whether it is right; remembers the answer."""
        place, side = int(task.position[lane]), int(task.side[lane, task.position[lane]])
        if side and action in (LEFT, RIGHT):
            kind = "fork, tried before" if place in self.forks else "fork, new"
            self.forks.add(place)
            return kind, action == side
        asked = task.instruction[lane, min(task.progress[lane], task.goals.max_goals - 1), 0]
        if side or action < DROPS[0] or place != asked:
            return None
        right = action == task.drop[lane]
        kind = "drop, none has worked yet"
        if self.worked is not None:
            kind = "drop, one has worked"
        elif len(self.failed) == len(DROPS) - 1:
            kind = "drop, three have failed"
        if right and task.packages[lane]:
            self.worked = action
        elif not right:
            self.failed.add(action)
        return kind, right


def count(run: Path, rollouts: int) -> tuple[Counter[str], Counter[str], float]:
    """Decisions of each kind, the right ones among them, and the share of complete rollouts."""
    env = worlds(run, rollouts)
    task = env.task
    assert isinstance(task, PackageDelivery)
    known = [Known() for _ in range(rollouts)]
    made: Counter[str] = Counter()
    right: Counter[str] = Counter()

    def look(lanes: Array, action: Array) -> None:
        for lane in lanes.tolist():
            judged = known[lane].judge(task, lane, int(action[lane]))
            if judged is not None:
                made[judged[0]] += 1
                right[judged[0]] += judged[1]

    records = play_observed(run, env, look)
    return made, right, float(np.mean([record.success for record in records]))


if __name__ == "__main__":
    made, right, success = count(*parse(__doc__))
    print(f"success {success:.1%}")
    for kind in sorted(made):
        print(f"{kind:28} {right[kind] / made[kind]:6.1%} right of {made[kind]:,}")
