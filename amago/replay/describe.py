"""Relabeling in words and numbers: one trajectory before and after, and which goals it picks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from amago.goals import GoalSpec
from amago.replay.rarity import keys_of
from amago.replay.reader import TrajectoryReader
from amago.replay.relabel import Relabeler, candidates, completed_rows
from amago.replay.settings import RelabelSettings
from amago.types import Array, Trajectory


def describe_relabel(before: Trajectory, after: Trajectory, goal_spec: GoalSpec) -> str:
    """What was asked, what happened, what is asked now, and the rewards, as text."""
    assert before.achieved is not None and before.instruction is not None
    assert after.instruction is not None
    goals = before.achieved[1]
    distinct = len(np.unique(keys_of(goals)))
    lines = [
        f"world      seed {before.world_seed}, {before.task}",
        f"asked      {goal_spec.write(before.instruction)}",
        f"happened   {_outcome(before)}; goals achieved {len(goals)} times, {distinct} different",
        *_completions(before, goal_spec),
    ]
    if after is before:
        return "\n".join([*lines, "now asked  the same"])
    lines += [
        f"now asked  {goal_spec.write(after.instruction)}",
        f"happens    {_outcome(after)}",
        *_completions(after, goal_spec, before),
    ]
    return "\n".join(lines)


def _outcome(trajectory: Trajectory) -> str:
    assert trajectory.instruction is not None and trajectory.progress is not None
    done, asked = int(trajectory.progress[-1]), len(trajectory.instruction)
    if done == asked:
        end = "ends in success"
    else:
        end = "ends there" if trajectory.terminal[-1] else "cut off there"
    total = float(trajectory.prev_reward.sum())
    return f"{done} of {asked} goals in {trajectory.num_steps} steps, {end}, return {total:g}"


def _completions(
    trajectory: Trajectory, goal_spec: GoalSpec, original: Trajectory | None = None
) -> list[str]:
    """One line per completed goal; where an original is given, whether it was so there."""
    assert trajectory.instruction is not None
    goals, rows = trajectory.instruction, completed_rows(trajectory)
    known = set() if original is None else {*completed_rows(original).tolist()}
    lines = []
    for goal, row in zip(goals, rows.tolist(), strict=False):
        reward = float(trajectory.prev_reward[row])
        note = "" if original is None else "  as before" if row in known else "  in hindsight"
        lines.append(f"  step {row:>4}  {goal_spec.write(goal[None]):<16} {reward:+g}{note}")
    return lines


@dataclass(frozen=True)
class GoalChoice:
    """One goal of a store: in how many trajectories it could be chosen, and how often it is."""

    goal: str
    trajectories: int
    """Trajectories with open goals in which a candidate step achieved it."""
    with_importance: float
    """Chance to be chosen in one of those, when rare goals are preferred."""
    without_importance: float


def goal_choices(
    store: TrajectoryReader,
    words: GoalSpec | None = None,
    *,
    samples: int = 20,
    max_trajectories: int = 2000,
    seed: int = 0,
) -> list[GoalChoice]:
    """How often each goal is chosen with and without importance sampling (paper Figure 27).

    "Given that a goal is achieved in a trajectory that needs to be relabeled, what is the
    probability that it is chosen?" Each trajectory is relabeled `samples` times either way.
    Goals are listed by how many trajectories achieve them, the rarest first, as `words` writes
    them, unless the store's own way is good enough.
    """
    spec = words or store.goals
    if spec is None:
        raise ValueError("expected a store of trajectories with goals, got one without")
    rng = np.random.default_rng(seed)
    relabelers = [
        Relabeler(RelabelSettings(importance_sampling=wanted), store.rarity() if wanted else None)
        for wanted in (True, False)
    ]
    goals: dict[int | bytes, Array] = {}
    counts: dict[int | bytes, Array] = {}
    for trajectory_id in rng.permutation(store.ids)[:max_trajectories].tolist():
        trajectory = store.read(trajectory_id)
        for key, goal in _open_candidates(trajectory).items():
            goals[key] = goal
            counts.setdefault(key, np.zeros(3))[0] += 1
        for column, relabeler in enumerate(relabelers, start=1):
            for _ in range(samples):
                chosen = np.unique(keys_of(relabeler.choose(trajectory, rng).goals))
                for key in chosen.tolist():
                    counts[key][column] += 1
    rows = [
        GoalChoice(
            spec.write(goals[key][None]),
            int(count),
            with_importance / (samples * count),
            without / (samples * count),
        )
        for key, (count, with_importance, without) in counts.items()
    ]
    return sorted(rows, key=lambda row: (row.trajectories, row.goal))


def _open_candidates(trajectory: Trajectory) -> dict[int | bytes, Array]:
    """The goals among which relabeling chooses, by key; none where all is complete."""
    assert trajectory.achieved is not None and trajectory.instruction is not None
    assert trajectory.progress is not None
    if trajectory.progress[-1] == len(trajectory.instruction):
        return {}
    offsets, goals = trajectory.achieved
    rows = candidates(trajectory)
    spans = [goals[offsets[row] : offsets[row + 1]] for row in rows.tolist()]
    found = np.concatenate([goals[:0], *spans])
    return dict(zip(keys_of(found).tolist(), found, strict=True))
