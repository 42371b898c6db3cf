"""Relabeling in pictures: one trajectory before and after, and how often goals are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from amago.goals import GoalSpec
from amago.replay.describe import GoalChoice
from amago.replay.relabel import completed_rows
from amago.types import Trajectory

DOTS_PER_INCH = 130


def plot_relabel(
    before: Trajectory, after: Trajectory, goal_spec: GoalSpec, path: str | Path
) -> None:
    """Progress over the steps under the old and the new instruction; a mark per paid goal."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained")
    both = figure.subplots(2, 1, sharex=True)
    for axes, trajectory, name in zip(both, (before, after), ("asked", "now asked"), strict=True):
        assert trajectory.progress is not None and trajectory.instruction is not None
        axes.step(np.arange(len(trajectory.progress)), trajectory.progress, where="post",
                  color="#0072B2")  # fmt: skip
        rows = completed_rows(trajectory)
        axes.plot(rows, np.arange(1, len(rows) + 1), "o", color="#D55E00", label="+1")
        for goal, row, count in zip(
            trajectory.instruction, rows.tolist(), range(1, len(rows) + 1), strict=False
        ):
            axes.annotate(goal_spec.write(goal[None]), (row, count), (4, -12),
                          textcoords="offset points", fontsize=8)  # fmt: skip
        axes.axvline(trajectory.num_steps, color="#777777", linestyle=":")
        axes.set_ylim(-0.2, goal_spec.max_goals + 0.4)
        axes.set_ylabel("goals complete")
        total = trajectory.prev_reward.sum()
        axes.set_title(
            f"{name}: {goal_spec.write(trajectory.instruction)}   (return {total:g})",
            loc="left", fontsize=10,
        )  # fmt: skip
    both[1].set_xlabel("step")
    figure.savefig(path, dpi=DOTS_PER_INCH)


def plot_choices(choices: Sequence[GoalChoice], path: str | Path) -> None:
    """Chance of being chosen over how rare a goal is, either way (paper Figure 27)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    rarity = [choice.trajectories for choice in choices]
    axes.plot(rarity, [choice.with_importance for choice in choices], "o", color="#0072B2",
              alpha=0.6, label="rare goals preferred")  # fmt: skip
    axes.plot(rarity, [choice.without_importance for choice in choices], "s", color="#D55E00",
              alpha=0.6, markersize=4, label="all goals alike")  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlabel("trajectories in which the goal could be chosen")
    axes.set_ylabel("chance to be chosen in one of them")
    axes.legend()
    figure.savefig(path, dpi=DOTS_PER_INCH)
