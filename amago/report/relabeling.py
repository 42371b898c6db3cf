"""Relabeling in pictures: one trajectory before and after, and how often goals are chosen."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from amago.goals import GoalSpec
from amago.replay.candidates import completed_rows
from amago.replay.describe import GoalChoice, achieving_rows, open_candidates
from amago.replay.relabel import Choice
from amago.report.sweeps import write_csv
from amago.types import Array, Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

_DOTS_PER_INCH = 130
_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
_LINE_LENGTH = 105
"""Characters of a heading that fit above a panel."""


def plot_relabel(
    before: Trajectory,
    after: Trajectory,
    goal_spec: GoalSpec,
    path: str | Path,
    choice: Choice | None = None,
) -> None:
    """Progress over the steps under the old and the new instruction, with a mark per goal.

    Between them stand the steps that achieved goals, those that relabeling may choose, and,
    with a choice, those that it chose.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(4, 1.3, 4))
    bottom.set_xlim(0, before.num_steps * 1.02)
    _draw_progress(top, before, goal_spec, "asked")
    _draw_progress(bottom, after, goal_spec, "now asked")
    _draw_steps(middle, before, goal_spec, choice)
    bottom.set_xlabel("step")
    drawn = [*top.lines, *middle.lines]  # the panel below has no others
    figure.legend(handles=drawn, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=_DOTS_PER_INCH)


def _draw_progress(axes: Axes, trajectory: Trajectory, goal_spec: GoalSpec, name: str) -> None:
    from matplotlib.ticker import MaxNLocator

    assert trajectory.progress is not None and trajectory.instruction is not None
    axes.step(np.arange(len(trajectory.progress)), trajectory.progress, where="post", color=_BLUE,
              label="goals complete")  # fmt: skip
    rows = completed_rows(trajectory)
    counts = np.arange(1, len(rows) + 1)
    axes.plot(rows, counts, "o", color=_ORANGE, label="a goal is completed: reward +1")
    axes.axvline(trajectory.num_steps, color=_GREY, linestyle=":", label="the rollout ends")
    for goal, row, count in zip(trajectory.instruction, rows, counts, strict=False):
        # On the side where the curve is not, unless that is outside of the panel.
        early = row < 0.15 * axes.get_xlim()[1]
        offset, side = ((6, -11), "left") if early else ((-5, 4), "right")
        axes.annotate(goal_spec.write(goal[None]), (row, count), offset, ha=side,
                      textcoords="offset points", fontsize=8)  # fmt: skip
    axes.set_ylim(-0.2, len(trajectory.instruction) + 0.6)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("goals complete")
    heading = f"{name}: {goal_spec.write(trajectory.instruction)}"
    total = trajectory.prev_reward.sum()
    axes.set_title(textwrap.fill(f"{heading}   (return {total:g})", _LINE_LENGTH),
                   loc="left", fontsize=10)  # fmt: skip


def _draw_steps(
    axes: Axes, trajectory: Trajectory, goal_spec: GoalSpec, choice: Choice | None
) -> None:
    """Ticks in three lines, so that steps of several kinds show as all of them."""
    chosen = np.zeros(0, np.int64) if choice is None else choice.rows
    free = open_candidates(trajectory, goal_spec).rows
    lines: list[tuple[str, Array, str, str]] = [
        ("achieved", achieving_rows(trajectory), _GREY, "step that achieved goals"),
        ("candidate", free, _BLUE, "step that may be chosen in hindsight"),
        ("chosen", chosen, _GREEN, "step that was chosen"),
    ]
    for height, (_, rows, colour, label) in enumerate(lines):
        axes.plot(rows, np.full(len(rows), height), "|", color=colour, markersize=11,
                  markeredgewidth=1.6, label=label)  # fmt: skip
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_yticks(range(len(lines)), [name for name, *_ in lines])
    axes.tick_params(axis="y", length=0)
    axes.set_title("what happened", loc="left", fontsize=10)


def plot_choices(choices: Sequence[GoalChoice], path: str | Path) -> None:
    """Chance of being chosen over rarity, with and without importance sampling (Figure 27)."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullLocator, PercentFormatter, StrMethodFormatter

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    rarity = [choice.trajectories for choice in choices]
    axes.plot(rarity, [choice.with_importance for choice in choices], "o", color=_BLUE,
              alpha=0.6, label="rare goals preferred")  # fmt: skip
    axes.plot(rarity, [choice.without_importance for choice in choices], "s", color=_ORANGE,
              alpha=0.6, markersize=4, label="all goals alike")  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlabel("trajectories in which the goal could be chosen")
    axes.set_ylabel("chance to be chosen in one of them")
    axes.legend()
    figure.savefig(path, dpi=_DOTS_PER_INCH)


def write_choices(choices: Sequence[GoalChoice], path: Path) -> None:
    """The numbers behind `plot_choices`, one goal per row."""
    write_csv(path, [field.name for field in fields(GoalChoice)], map(asdict, choices))


def choice_table(choices: Sequence[GoalChoice], most: int = 10) -> Table:
    """The goals whose chance importance sampling changes most."""
    from rich import box
    from rich.table import Table

    table = Table(title="Goals whose chance to be chosen changes most", title_justify="left",
                  box=box.SIMPLE_HEAD)  # fmt: skip
    table.add_column("goal", overflow="fold")
    for name in ("trajectories", "all alike", "rare preferred", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in sorted(choices, key=lambda row: -abs(_change(row)))[:most]:
        shares = (f"{row.without_importance:.1%}", f"{row.with_importance:.1%}")
        table.add_row(row.goal, f"{row.trajectories}", *shares, f"{100 * _change(row):+.1f}")
    return table


def _change(choice: GoalChoice) -> float:
    return choice.with_importance - choice.without_importance
