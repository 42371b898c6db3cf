"""Exploration noise over a rollout and over training, from data/schedule.csv."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from amago.report import panels
from amago.reproduce.claims.claim import Claim
from amago.reproduce.claims.markdown import markdown
from amago.reproduce.views.figure import draw_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(claim: Claim, path: Path) -> None:
    import matplotlib

    found = _curves(claim)
    shades = matplotlib.colormaps["viridis"].resampled(len(found) + 1)

    def within(axes: Axes) -> None:
        for index, (moment, points) in enumerate(found.items()):
            label = f"{100 * moment:.0f}% of the annealing"
            axes.plot(*zip(*points, strict=True), color=shades(index), label=label)
        axes.set(title="within a rollout", xlabel="share of the rollout", ylabel="largest ε")
        axes.set_ylim(bottom=0)
        panels.label_shares(axes)

    def over_training(axes: Axes) -> None:
        for place, (name, style) in ((0, ("first step", "-")), (-1, ("last step", "--"))):
            levels = [points[place][1] for points in found.values()]
            axes.plot(list(found), levels, style, color="black", label=name)
        axes.set(title="over training", xlabel="share of the annealing", ylabel="largest ε")
        axes.set_ylim(bottom=0)
        panels.label_shares(axes)

    draw_panels([within, over_training], path)


def table(claim: Claim) -> str:
    """ε at the first and the last step of a rollout."""
    rows = [
        [f"{100 * moment:.0f}%", *(f"{points[place][1]:.3f}" for place in (0, -1))]
        for moment, points in _curves(claim).items()
    ]
    return markdown(["share of the annealing", "ε at the first step", "ε at the last step"], rows)


def _curves(claim: Claim) -> dict[float, list[tuple[float, float]]]:
    """ε over the share of a rollout, by the share of the annealing that has passed."""
    found: dict[float, list[tuple[float, float]]] = {}
    with (claim.folder / "data" / "schedule.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            point = (float(row["rollout"]), float(row["epsilon"]))
            found.setdefault(float(row["annealed"]), []).append(point)
    return found
