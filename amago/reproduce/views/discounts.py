"""What the critics expect at every discount over training: one panel per arm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from amago.report import panels
from amago.report.curves import mean_curve
from amago.reproduce.claims.claim import Arm, Claim
from amago.reproduce.views.figure import Panel, draw_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PREFIX = "value/q@"
NEEDS = (_PREFIX,)


def draw(claim: Claim, path: Path) -> None:
    names = {name for arm in claim.arms for name in _names(arm)}
    ordered = sorted(names, key=lambda name: float(name.removeprefix(_PREFIX)))
    draw_panels([_panel(arm, ordered) for arm in claim.arms], path)


def _panel(arm: Arm, names: list[str]) -> Panel:
    def draw(axes: Axes) -> None:
        import matplotlib

        shades = matplotlib.colormaps["viridis"].resampled(max(2, len(names)))
        for place, name in enumerate(names):
            curves = [panels.series(run, name) for run in arm.runs]
            curves = [curve for curve in curves if len(curve[0])]
            if curves:
                label = f"γ = {name.removeprefix(_PREFIX)}"
                axes.plot(*mean_curve(curves), color=shades(place), linewidth=1.6, label=label)
        title = f"{arm.task}: {arm.name}" if arm.task else arm.name
        panels.label_steps(axes, title, "mean Q, scaled rewards", panels.clock_of(arm.runs))

    return draw


def _names(arm: Arm) -> list[str]:
    return [name for run in arm.runs for name in panels.keys(run, _PREFIX)]
