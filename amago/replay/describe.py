"""Relabeling in words and numbers: one trajectory before and after, and which goals it picks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from amago.goals import GoalSpec
from amago.replay.candidates import Candidates, candidates, completed_rows
from amago.replay.rarity import keys_of
from amago.replay.reader import TrajectoryReader
from amago.replay.relabel import Choice, Relabeler
from amago.replay.settings import RelabelSettings
from amago.types import Array, Trajectory

_MOST_LINES = 16
"""Achieved goals are listed in so many lines; what completed or was chosen is always there."""
_MOST_GOALS = 4
"""Goals of one step that are written out."""


def describe_relabel(
    before: Trajectory, after: Trajectory, goal_spec: GoalSpec, choice: Choice | None = None
) -> str:
    """What was asked, what happened, what is asked now, and the rewards, as text.

    With a choice, also the steps that achieved goals, and what relabeling made of each.
    """
    assert before.achieved is not None and before.instruction is not None
    assert after.instruction is not None
    goals = before.achieved[1]
    distinct = len(np.unique(keys_of(goals)))
    lines = [
        f"world      seed {before.world_seed}, {before.task}",
        f"asked      {goal_spec.write(before.instruction)}",
        f"happened   {_outcome(before)}",
        f"achieved   goals {len(goals)} times, {distinct} different",
        *_completions(before, goal_spec),
    ]
    if choice is not None:
        lines += _achievements(before, goal_spec, choice)
    if after is before:
        return "\n".join([*lines, "now asked  the same"])
    lines += [
        f"now asked  {goal_spec.write(after.instruction)}",
        f"happens    {_outcome(after)}",
        *_completions(after, goal_spec, before),
    ]
    return "\n".join(lines)


def achieving_rows(trajectory: Trajectory) -> Array:
    """Rows whose step achieved some goal."""
    assert trajectory.achieved is not None
    offsets = trajectory.achieved[0]
    rows: Array = 1 + (offsets[2:] > offsets[1:-1]).nonzero()[0]
    return rows


def open_candidates(trajectory: Trajectory, goal_spec: GoalSpec) -> Candidates:
    """Goals among which relabeling chooses; none where all is complete."""
    assert trajectory.instruction is not None and trajectory.progress is not None
    found = candidates(trajectory, repeats=goal_spec.repeats)
    complete = trajectory.progress[-1] == len(trajectory.instruction)
    return Candidates(*(values[:0] for values in found)) if complete else found


def _achievements(trajectory: Trajectory, goal_spec: GoalSpec, choice: Choice) -> list[str]:
    """One line per run of steps that achieved the same and were treated alike."""
    rows = achieving_rows(trajectory).tolist()
    free = np.unique(open_candidates(trajectory, goal_spec).rows).tolist()
    if not rows:
        return ["achieved   nothing in any step"]
    marks = dict.fromkeys(free, "candidate")
    marks |= dict.fromkeys(completed_rows(trajectory).tolist(), "completed")
    chosen = dict(zip(choice.rows.tolist(), choice.goals, strict=True))
    for row, goal in chosen.items():
        written = goal_spec.write(goal[None])
        alone = written == _achieved_at(trajectory, row, goal_spec)
        marks[row] = "chosen" if alone else f"chosen: {written}"

    def treatment(numbered: tuple[int, int]) -> tuple[int, str, str]:
        index, row = numbered
        # Steps that follow each other are as far from their index.
        return row - index, _achieved_at(trajectory, row, goal_spec), marks.get(row, "")

    runs = [
        ([row for _, row in steps], goals, mark)
        for (_, goals, mark), steps in groupby(enumerate(rows), treatment)
    ]
    plain = [index for index, (*_, mark) in enumerate(runs) if mark in ("candidate", "")]
    left_out = {*plain[max(0, _MOST_LINES - (len(runs) - len(plain))) :]}
    shown = [run for index, run in enumerate(runs) if index not in left_out]
    width = min(40, max(len(goals) for _, goals, _ in shown))
    rest = sum(len(runs[index][0]) for index in left_out)
    return [
        f"achieved   in {len(rows)} steps, of which {len(free)} are candidates and {len(chosen)} "
        "chosen",
        *(
            f"  {_steps(steps):<13} {goals:<{width}}  {mark}".rstrip()
            for steps, goals, mark in shown
        ),
        *([f"  and {rest} more steps" if rest > 1 else "  and 1 more step"] if rest else []),
    ]


def _steps(rows: list[int]) -> str:
    return f"step {rows[0]}:" if len(rows) == 1 else f"steps {rows[0]}-{rows[-1]}:"


def _achieved_at(trajectory: Trajectory, row: int, goal_spec: GoalSpec) -> str:
    assert trajectory.achieved is not None
    offsets, goals = trajectory.achieved
    achieved = goals[int(offsets[row]) : int(offsets[row + 1])]
    rest = len(achieved) - _MOST_GOALS
    return goal_spec.write(achieved[:_MOST_GOALS]) + (f" and {rest} more" if rest > 0 else "")


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
    settings: RelabelSettings | None = None,
    *,
    samples: int = 20,
    max_trajectories: int = 2000,
    seed: int = 0,
) -> list[GoalChoice]:
    """How often each goal is chosen with and without importance sampling (paper Figure 27).

    "Given that a goal is achieved in a trajectory that needs to be relabeled, what is the
    probability that it is chosen?" Each trajectory is relabeled `samples` times either way, in
    all else as the settings say.
    Goals are listed by how many trajectories achieve them, the rarest first, as `words` writes
    them, unless the store's own way is good enough.
    """
    spec = words or store.goals
    if spec is None:
        raise ValueError("expected a store of trajectories with goals, got one without")
    rng = np.random.default_rng(seed)
    shared = settings or RelabelSettings()
    relabelers = [
        Relabeler(
            replace(shared, importance_sampling=wanted),
            store.rarity() if wanted else None,
            repeats=spec.repeats,
        )
        for wanted in (True, False)
    ]
    goals: dict[int | bytes, Array] = {}
    counts: dict[int | bytes, Array] = {}
    for trajectory_id in rng.permutation(store.ids)[:max_trajectories].tolist():
        trajectory = relabelers[0].begin(store.read(trajectory_id))
        found = open_candidates(trajectory, spec)
        for key, goal in dict(zip(found.keys.tolist(), found.goals, strict=True)).items():
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
