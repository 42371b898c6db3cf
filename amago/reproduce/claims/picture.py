"""The picture of a claim: one panel per task, one legend, references as lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from amago.report import panels
from amago.report.curves import (
    Curve,
    Styles,
    arm_styles,
    draw_arm,
    last_tenths,
    new_figure,
    tenths_of_others,
)
from amago.report.runs import RunRecord
from amago.reproduce.claims.claim import Arm, Claim
from amago.reproduce.claims.scores import reference_score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_COLUMNS = 4
PANEL_WIDTH, PANEL_HEIGHT = 4.2, 3.1
_DOTS_PER_INCH = 90
_COLOURS = 64


def plot_claim(claim: Claim, path: str | Path) -> None:
    """Evaluations of all arms over training, seeds thin and their mean thick."""
    styles = arm_styles(list(dict.fromkeys(arm.name for arm in claim.arms)))
    drawn = [_progress_panel(claim, task, arms, styles) for task, arms in claim.tasks.items()]
    if claim.adaptation:
        drawn += [_adaptation_panel(task, arms, styles) for task, arms in claim.tasks.items()]
    columns = min(_MOST_COLUMNS, len(drawn))
    rows = -(-len(drawn) // columns)
    figure = new_figure(max(6.0, PANEL_WIDTH * columns), PANEL_HEIGHT * rows + 0.5)
    grid = figure.add_gridspec(rows, columns)
    for index, draw in enumerate(drawn):
        axes = figure.add_subplot(grid[divmod(index, columns)])
        draw(axes)
        panels.finish(axes)
    panels.legend_below(figure)
    _save_small(figure, path)


def _progress_panel(
    claim: Claim, task: str, arms: Sequence[Arm], styles: Styles
) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        _draw_arms(axes, arms, lambda run: panels.series(run, claim.metric.evaluation), styles)
        levels = {name: reference_score(arms, claim.metric, name) for name in ("random", "oracle")}
        panels.draw_levels(axes, {name: at for name, at in levels.items() if at is not None})
        if claim.metric.percent:
            axes.set_ylim(-0.03, 1.03)
            panels.label_shares(axes)
        title = task or ("during training" if claim.adaptation else "")
        panels.label_steps(axes, title, f"{claim.metric.name}, evaluation")

    return draw


def _adaptation_panel(task: str, arms: Sequence[Arm], styles: Styles) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        _draw_arms(axes, arms, last_tenths, styles)
        runs = [run for arm in arms for run in arm.runs]
        panels.draw_references(axes, tenths_of_others(runs))
        panels.label_tenths(axes, f"{task} within a rollout, after training".strip())

    return draw


def _save_small(figure: Figure, path: str | Path) -> None:
    """A PNG with few colours, because pictures stay in the repository's history."""
    from PIL import Image

    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=_DOTS_PER_INCH)
    drawn.seek(0)
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(_COLOURS).save(path, optimize=True)


def _draw_arms(
    axes: Axes, arms: Sequence[Arm], curve: Callable[[RunRecord], Curve], styles: Styles
) -> None:
    for arm in arms:
        draw_arm(axes, [curve(run) for run in arm.runs], arm.name, styles[arm.name])
