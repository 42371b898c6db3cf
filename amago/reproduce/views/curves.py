"""Evaluations over training: one panel per task, references as lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from amago.report import panels
from amago.report.curves import Styles, last_tenths, tenths_of_others
from amago.reproduce.claims.claim import Arm, Claim
from amago.reproduce.claims.scores import reference_score
from amago.reproduce.views.figure import Panel, clock_of_arms, draw_arms, draw_panels, styles_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(claim: Claim, path: str | Path) -> None:
    """Evaluations of all arms over training, seeds thin and their mean thick."""
    styles = styles_of(claim)
    drawn = [progress(claim, task, arms, styles) for task, arms in claim.tasks.items()]
    if len({run.method for arm in claim.arms for run in arm.runs}) > 1:
        drawn += [_over_minutes(claim, task, arms, styles) for task, arms in claim.tasks.items()]
    if claim.adaptation:
        drawn += [_adaptation(task, arms, styles) for task, arms in claim.tasks.items()]
    draw_panels(drawn, path)


def progress(claim: Claim, task: str, arms: Sequence[Arm], styles: Styles) -> Panel:
    """The claim's metric over training."""

    def draw(axes: Axes) -> None:
        clock, metric = clock_of_arms(arms), claim.metric.evaluation
        draw_arms(axes, arms, lambda run: panels.series(run, metric, clock), styles)
        levels = {name: reference_score(arms, claim.metric, name) for name in ("random", "oracle")}
        panels.draw_levels(axes, {name: at for name, at in levels.items() if at is not None})
        if claim.metric.percent:
            axes.set_ylim(-0.03, 1.03)
            panels.label_shares(axes)
        title = task or ("during training" if claim.adaptation else "")
        panels.label_steps(axes, title, f"{claim.metric.label}, evaluation", clock)

    return draw


def _over_minutes(claim: Claim, task: str, arms: Sequence[Arm], styles: Styles) -> Panel:
    """The same over time: methods differ in what a step of the environment costs them."""

    def draw(axes: Axes) -> None:
        key = claim.metric.evaluation
        draw_arms(axes, arms, lambda run: panels.minutes_series(run, key), styles)
        if claim.metric.percent:
            axes.set_ylim(-0.03, 1.03)
            panels.label_shares(axes)
        panels.label_minutes(axes, f"{task} over time".strip(), f"{claim.metric.label}, evaluation")

    return draw


def _adaptation(task: str, arms: Sequence[Arm], styles: Styles) -> Panel:
    def draw(axes: Axes) -> None:
        draw_arms(axes, arms, last_tenths, styles)
        runs = [run for arm in arms for run in arm.runs]
        panels.draw_references(axes, tenths_of_others(runs))
        panels.label_tenths(axes, f"{task} within a rollout, after training".strip())

    return draw
