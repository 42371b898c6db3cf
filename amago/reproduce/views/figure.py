"""What all views share: a grid of panels with one legend, saved as a small file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from amago.report import panels
from amago.report.curves import Curve, Styles, arm_styles, draw_arm, new_figure
from amago.report.runs import RunRecord
from amago.reproduce.claims.claim import Arm, Claim

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panel = Callable[["Axes"], None]
_MOST_COLUMNS = 4
_PANEL_WIDTH, _PANEL_HEIGHT = 4.2, 3.1
_TALL_WIDTH, _BAR_INCHES = 8.0, 0.17
_DOTS_PER_INCH = 90
_COLOURS = 64


def draw_panels(drawn: Sequence[Panel], path: str | Path) -> None:
    """Panels side by side, at most four in a row, one legend below them."""
    columns = min(_MOST_COLUMNS, len(drawn))
    rows = -(-len(drawn) // columns)
    figure = new_figure(max(6.0, _PANEL_WIDTH * columns), _PANEL_HEIGHT * rows + 0.5)
    grid = figure.add_gridspec(rows, columns)
    for index, draw in enumerate(drawn):
        axes = figure.add_subplot(grid[divmod(index, columns)])
        draw(axes)
        panels.finish(axes)
    panels.legend_below(figure)
    save_small(figure, path)


def draw_tall(panel: Panel, num_bars: int, path: str | Path) -> None:
    """One panel that is as tall as its bars need, with the legend below it."""
    figure = new_figure(_TALL_WIDTH, 2.0 + _BAR_INCHES * num_bars)
    axes = figure.add_subplot()
    panel(axes)
    panels.finish(axes)
    panels.legend_below(figure)
    save_small(figure, path)


def styles_of(claim: Claim) -> Styles:
    """One style per name of an arm, in all panels."""
    return arm_styles(list(dict.fromkeys(arm.name for arm in claim.arms)))


def draw_arms(
    axes: Axes, arms: Sequence[Arm], curve: Callable[[RunRecord], Curve], styles: Styles
) -> None:
    """Every arm's seeds thin and their mean thick."""
    for arm in arms:
        draw_arm(axes, [curve(run) for run in arm.runs], arm.name, styles[arm.name])


def clock_of_arms(arms: Sequence[Arm]) -> panels.Clock:
    """What curves of some arms go along."""
    return panels.clock_of(run for arm in arms for run in arm.runs)


def metric_panel(
    arms: Sequence[Arm], key: str, title: str, unit: str, styles: Styles, *, log: bool = False
) -> Panel:
    """One logged metric of some arms over training."""

    def draw(axes: Axes) -> None:
        clock = clock_of_arms(arms)
        draw_arms(axes, arms, lambda run: panels.series(run, key, clock), styles)
        if log and axes.lines:
            lowest = min(float(np.min(line.get_ydata())) for line in axes.lines)
            axes.set_yscale("log" if lowest > 0 else "symlog")
        panels.label_steps(axes, title.removeprefix(": "), unit, clock)

    return draw


def whole_numbers(axes: Axes) -> None:
    """Ticks of the x axis at whole numbers alone."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def save_small(figure: Figure, path: str | Path) -> None:
    """A PNG with few colours, because pictures stay in the repository's history."""
    from PIL import Image

    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=_DOTS_PER_INCH)
    drawn.seek(0)
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(_COLOURS).save(path, optimize=True)
