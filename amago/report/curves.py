"""Learning curves and adaptation curves as PNG files."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from amago.report import panels
from amago.report.panels import PALETTE, Floats
from amago.report.runs import Run, label

# Only the functions that draw import matplotlib, which is slow to load, and they use Figure
# directly, because pyplot keeps global state and looks for a screen.
if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE_STYLES = ("-", "--", ":", "-.")
DOTS_PER_INCH = 130
LEGEND_CHARACTERS = 60

Panel = Callable[["Axes", Run], None]
References = Mapping[str, Sequence[float]]


def plot_run(run: Run, path: str | Path, references: References | None = None) -> None:
    """`curves.png` of one run; references (return per tenth) default to those of result.json."""
    chosen = _panels(run, references or _references([run]))
    columns = 2 if len(chosen) == 4 else min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    figure = _figure(5.0 * columns, 3.6 * rows)
    grid = figure.add_gridspec(rows, columns)
    for index, draw in enumerate(chosen):
        row, column = divmod(index, columns)
        # The last panel takes the rest of its row, so that no hole stays.
        stop = columns if index == len(chosen) - 1 else column + 1
        axes = figure.add_subplot(grid[row, column:stop])
        draw(axes, run)
        panels.finish(axes)
    figure.suptitle(f"{run.preset}, seed {run.seed}", fontsize=13, fontweight="bold")
    figure.savefig(path, dpi=DOTS_PER_INCH)


def plot_sweep(groups: Mapping[str, Sequence[Run]], path: str | Path) -> None:
    """Evaluation return over steps, seeds thin and their mean thick, and adaptation curves.

    Every preset has a row of its own, since the returns of two domains share no scale.
    """
    by_preset: dict[str, dict[str, Sequence[Run]]] = {}
    for group, runs in groups.items():
        by_preset.setdefault(runs[0].preset, {})[group] = runs
    adapting = any(panels.adaptation(run) for runs in groups.values() for run in runs)
    columns = 2 if adapting else 1
    figure = _figure(6.2 * columns, 4.8 * len(by_preset))
    grid = figure.subplots(len(by_preset), columns, squeeze=False)
    for row, (preset, members) in zip(grid, by_preset.items(), strict=True):
        _draw_preset(row, preset, members)
    figure.savefig(path, dpi=DOTS_PER_INCH)


def mean_curve(curves: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """The mean over seeds, where every seed has data, interpolated at all their steps."""
    start = max(steps[0] for steps, _ in curves)
    stop = min(steps[-1] for steps, _ in curves)
    grid = np.unique(np.concatenate([steps for steps, _ in curves]))
    grid = grid[(grid >= start) & (grid <= stop)]
    return grid, np.mean([np.interp(grid, steps, values) for steps, values in curves], axis=0)


def _panels(run: Run, references: References) -> list[Panel]:
    """What there is to draw of a run, the most telling first."""
    chosen: list[Panel] = [panels.draw_return]
    if panels.keys(run, "eval/success_rate") or panels.keys(run, "rollout/success"):
        chosen.append(panels.draw_success)
    if panels.adaptation(run):
        chosen.append(lambda axes, run: panels.draw_adaptation(axes, run, references))
    details: tuple[tuple[str, Panel], ...] = (
        ("loss/", panels.draw_losses),
        ("policy/entropy", panels.draw_entropy),
        ("value/q", panels.draw_values),
    )
    return chosen + [draw for prefix, draw in details if panels.keys(run, prefix)]


def _draw_preset(row: Sequence[Axes], preset: str, groups: Mapping[str, Sequence[Run]]) -> None:
    learning, *others = row
    for index, (group, runs) in enumerate(groups.items()):
        style = {
            "color": PALETTE[index % len(PALETTE)],
            "linestyle": LINE_STYLES[index // len(PALETTE) % len(LINE_STYLES)],
        }
        name = f"{label(group)} ({len(runs)} seed{'s' if len(runs) != 1 else ''})"
        # A legend wider than its panel would squeeze the panel to nothing.
        name = textwrap.fill(name, LEGEND_CHARACTERS, break_on_hyphens=False)
        _draw_group(learning, [panels.series(run, "eval/return_mean") for run in runs], name, style)
        for axes in others:
            _draw_group(axes, [_last_tenths(run) for run in runs], name, style)
    title = f"{preset}: evaluation (thick: mean over seeds)"
    panels.label_steps(learning, title, "return per rollout")
    panels.finish(learning, legend_below=True)
    for axes in others:
        panels.draw_references(axes, _references([run for runs in groups.values() for run in runs]))
        panels.label_tenths(axes, f"{preset}: adaptation within a rollout, last evaluation")
        panels.finish(axes, legend_below=True)


def _draw_group(
    axes: Axes, curves: Sequence[tuple[Floats, Floats]], name: str, style: Mapping[str, Any]
) -> None:
    curves = [curve for curve in curves if len(curve[0])]
    if not curves:
        return
    if len(curves) > 1:
        for steps, values in curves:
            axes.plot(steps, values, linewidth=0.8, alpha=0.45, **style)
    axes.plot(*mean_curve(curves), linewidth=2.4, label=name, **style)


def _last_tenths(run: Run) -> tuple[Floats, Floats]:
    found = panels.adaptation(run)
    blocks = found[-1][1] if found else np.zeros(0)
    return np.arange(1.0, len(blocks) + 1.0), blocks


def _references(runs: Sequence[Run]) -> References:
    """The reference lines of a figure, averaged over runs; none when their environments differ."""
    complete = [run for run in runs if run.result is not None and run.result.get("references")]
    if not complete or any(run.config.get("env") != runs[0].config.get("env") for run in runs):
        return {}
    given = [run.result["references"] for run in complete if run.result is not None]
    shared = [name for name in given[0] if all(lines.get(name) for lines in given)]
    return {name: np.mean([lines[name] for lines in given], axis=0).tolist() for name in shared}


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
