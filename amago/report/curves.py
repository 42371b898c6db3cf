"""Learning curves and adaptation curves as PNG files."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from amago.presets.arms import arm_names
from amago.report import panels
from amago.report.panels import PALETTE, Floats
from amago.report.runs import RunRecord
from amago.report.titles import run_title

# Only the functions that draw import matplotlib, which is slow to load.
if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINE_STYLES = ("-", "--", ":", "-.")
_DOTS_PER_INCH = 130
_LEGEND_CHARACTERS = 60
_MOST_ROWS = 8

_SUCCESS = "eval/success_rate"

Curve = tuple[Floats, Floats]
_Groups = Mapping[str, Sequence[RunRecord]]
_Panel = Callable[["Axes", RunRecord], None]
_Style = Mapping[str, Any]
Styles = Mapping[str, _Style]
_SweepPanel = Callable[["Axes", str, _Groups, Styles], None]
_References = Mapping[str, Sequence[float]]


def plot_run(run: RunRecord, path: str | Path, references: _References | None = None) -> None:
    """`curves.png` of one run; references (return per tenth) default to those of result.json."""
    chosen = _panels(run, references or tenths_of_others([run]))
    columns = 2 if len(chosen) == 4 else min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    figure = new_figure(5.0 * columns, 3.6 * rows)
    grid = figure.add_gridspec(rows, columns)
    for index, draw in enumerate(chosen):
        row, column = divmod(index, columns)
        # The last panel takes the rest of its row, so that no hole stays.
        stop = columns if index == len(chosen) - 1 else column + 1
        axes = figure.add_subplot(grid[row, column:stop])
        draw(axes, run)
        panels.finish(axes)
        panels.legend_under(axes)
    figure.suptitle(run_title(run), fontsize=13, fontweight="bold")
    figure.savefig(path, dpi=_DOTS_PER_INCH)


def plot_sweep(groups: _Groups, path: str | Path) -> None:
    """Evaluations over steps, seeds thin and their mean thick, and adaptation curves."""
    names = arm_names(groups)
    groups = {names[group]: runs for group, runs in groups.items()}
    by_task = _by_task(groups)
    drawn = [_sweep_panels(members) for members in by_task.values()]
    columns = max(map(len, drawn))
    figure = new_figure(max(7.0, 5.4 * columns), 3.8 * len(by_task) + 0.22 * len(groups))
    grid = figure.add_gridspec(len(by_task), columns)
    styles = arm_styles(list(groups))
    for row, (task, members) in enumerate(by_task.items()):
        for column, draw in enumerate(drawn[row]):
            axes = figure.add_subplot(grid[row, column])
            draw(axes, task, members, styles)
            panels.finish(axes)
    panels.legend_below(figure)
    figure.savefig(path, dpi=_DOTS_PER_INCH)


def arm_styles(names: Sequence[str]) -> dict[str, _Style]:
    """One colour and line style for each arm, the same in all panels of a figure."""
    return {
        name: {
            "color": PALETTE[index % len(PALETTE)],
            "linestyle": _LINE_STYLES[index // len(PALETTE) % len(_LINE_STYLES)],
        }
        for index, name in enumerate(names)
    }


def draw_arm(axes: Axes, curves: Sequence[Curve], name: str, style: _Style) -> None:
    """One arm: its seeds thin, their mean thick."""
    curves = [curve for curve in curves if len(curve[0])]
    if not curves:
        return
    if len(curves) > 1:
        for steps, values in curves:
            axes.plot(steps, values, linewidth=0.8, alpha=0.45, **style)
    # A legend wider than its figure would be cut off.
    name = textwrap.fill(name, _LEGEND_CHARACTERS, break_on_hyphens=False)
    axes.plot(*mean_curve(curves), linewidth=2.4, label=name, **style)


def last_tenths(run: RunRecord) -> Curve:
    """The adaptation curve at the end of a run."""
    return _numbered(panels.adaptation(run))


def _last_trials(run: RunRecord) -> Curve:
    """Return per trial at the end of a run."""
    return _numbered(panels.trial_returns(run))


def _numbered(found: Sequence[tuple[str, Floats]]) -> Curve:
    earned = found[-1][1] if found else np.zeros(0)
    return np.arange(1.0, len(earned) + 1.0), earned


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean over seeds, where every seed has data, interpolated at all their steps."""
    start = max(steps[0] for steps, _ in curves)
    stop = min(steps[-1] for steps, _ in curves)
    grid = np.unique(np.concatenate([steps for steps, _ in curves]))
    grid = grid[(grid >= start) & (grid <= stop)]
    return grid, np.mean([np.interp(grid, steps, values) for steps, values in curves], axis=0)


def _panels(run: RunRecord, references: _References) -> list[_Panel]:
    """What there is to draw of a run, the most telling first."""
    chosen: list[_Panel] = [panels.draw_return]
    if panels.keys(run, _SUCCESS) or panels.keys(run, "rollout/success"):
        chosen.append(panels.draw_success)
    if panels.shows_adaptation(run, references):
        chosen.append(lambda axes, run: panels.draw_adaptation(axes, run, references))
    if any(len(earned) > 1 for _, earned in panels.trial_returns(run)):
        chosen.append(panels.draw_trials)
    details: tuple[tuple[str, _Panel], ...] = (
        ("loss/", panels.draw_losses),
        ("policy/entropy", panels.draw_entropy),
        ("value/q", panels.draw_values),
    )
    return chosen + [draw for prefix, draw in details if panels.keys(run, prefix)]


def _by_task(groups: _Groups) -> dict[str, dict[str, Sequence[RunRecord]]]:
    """_Groups by preset, or by environment where a preset plays several: each has a row of its own,
    since the returns of two tasks share no scale. A whole suite has a bar chart instead."""
    envs: dict[str, set[str]] = {}
    for runs in groups.values():
        envs.setdefault(runs[0].preset, set()).add(_env_id(runs[0]))
    found: dict[str, dict[str, Sequence[RunRecord]]] = {}
    for group, runs in groups.items():
        preset = runs[0].preset
        several = len(envs[preset]) <= _MOST_ROWS
        task = f"{preset} {_env_id(runs[0])}" if several and preset != _env_id(runs[0]) else preset
        found.setdefault(task, {})[group] = runs
    return found


def _env_id(run: RunRecord) -> str:
    return str((run.config.get("env") or {}).get("id", ""))


def _sweep_panels(groups: _Groups) -> list[_SweepPanel]:
    members = [run for runs in groups.values() for run in runs]
    drawn: list[_SweepPanel] = [_draw_returns]
    if len({run.method for run in members}) > 1:
        drawn.append(_draw_over_minutes)
    if any(panels.keys(run, _SUCCESS) for run in members):
        drawn.append(_draw_successes)
    references = tenths_of_others(members)
    if any(panels.shows_adaptation(run, references) for run in members):
        drawn.append(_draw_adaptations)
    if any(len(_last_trials(run)[0]) > 1 for run in members):
        drawn.append(_draw_trials)
    return drawn


def _draw_returns(axes: Axes, preset: str, groups: _Groups, styles: Styles) -> None:
    clock = _clock(groups)
    _draw_groups(axes, groups, lambda run: panels.series(run, "eval/return_mean", clock), styles)
    panels.draw_levels(axes, _scores(groups, "return_mean"))
    panels.label_steps(axes, f"{preset}: evaluation", "return per rollout", clock)


def _draw_over_minutes(axes: Axes, preset: str, groups: _Groups, styles: Styles) -> None:
    """Methods differ in what a step of the environment costs them."""
    _draw_groups(axes, groups, lambda run: panels.minutes_series(run, "eval/return_mean"), styles)
    panels.draw_levels(axes, _scores(groups, "return_mean"))
    panels.label_minutes(axes, f"{preset}: evaluation over time", "return per rollout")


def _draw_successes(axes: Axes, preset: str, groups: _Groups, styles: Styles) -> None:
    clock = _clock(groups)
    _draw_groups(axes, groups, lambda run: panels.series(run, _SUCCESS, clock), styles)
    panels.draw_levels(axes, _scores(groups, "success_rate"))
    axes.set_ylim(-0.03, 1.03)
    panels.label_steps(axes, f"{preset}: success", "share of rollouts", clock)


def _clock(groups: _Groups) -> panels.Clock:
    return panels.clock_of(run for runs in groups.values() for run in runs)


def _draw_adaptations(axes: Axes, preset: str, groups: _Groups, styles: Styles) -> None:
    _draw_groups(axes, groups, last_tenths, styles)
    panels.draw_references(
        axes, tenths_of_others([run for runs in groups.values() for run in runs])
    )
    panels.label_tenths(axes, f"{preset}: adaptation, last evaluation")


def _draw_trials(axes: Axes, preset: str, groups: _Groups, styles: Styles) -> None:
    _draw_groups(axes, groups, _last_trials, styles)
    panels.label_trials(axes, f"{preset}: return per trial")


def _draw_groups(
    axes: Axes, groups: _Groups, curve: Callable[[RunRecord], Curve], styles: Styles
) -> None:
    for group, runs in groups.items():
        name = f"{group} ({len(runs)} seed{'s' if len(runs) != 1 else ''})"
        draw_arm(axes, [curve(run) for run in runs], name, styles[group])


def tenths_of_others(runs: Sequence[RunRecord]) -> _References:
    """What others earn per tenth, averaged over runs; none when their worlds differ."""
    given = _given(runs, "references")
    shared = [name for name in given[0] if all(lines.get(name) for lines in given)] if given else []
    return {name: np.mean([lines[name] for lines in given], axis=0).tolist() for name in shared}


def _scores(groups: _Groups, score: str) -> Mapping[str, float]:
    """One score of random play and of the oracle, averaged over runs, where it is known."""
    given = _given([run for runs in groups.values() for run in runs], "reference_scores")
    values: dict[str, list[float]] = {}
    for scores in given:
        for name, known in scores.items():
            if known[score] is not None:
                values.setdefault(name, []).append(known[score])
    return {name: float(np.mean(found)) for name, found in values.items()}


def _given(runs: Sequence[RunRecord], name: str) -> list[Any]:
    """One entry of the results of all complete runs.

    None when their environments differ and do not say the same of the same seeds; settings such
    as what an agent may see of its world do not move it.
    """
    by_env: dict[str, dict[int, Any]] = {}
    given = []
    for run in runs:
        if run.result is not None and run.result.get(name):
            env = json.dumps(run.config.get("env"), sort_keys=True)
            by_env.setdefault(env, {})[run.seed] = run.result[name]
            given.append(run.result[name])
    first, *others = by_env.values() if by_env else ({},)
    return given if all(other == first for other in others) else []


def new_figure(width: float, height: float) -> Figure:
    """An empty figure in inches; no pyplot, which keeps global state and looks for a screen."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
