"""Training, and beside it the return of the first trial in a new world, the second and so on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from amago.report import panels
from amago.report.curves import Curve, Styles
from amago.report.runs import RunRecord
from amago.report.tables import number
from amago.reproduce.claims.claim import Arm, Claim
from amago.reproduce.claims.counted import counted_table
from amago.reproduce.claims.markdown import markdown
from amago.reproduce.claims.scores import mean
from amago.reproduce.views.curves import progress
from amago.reproduce.views.figure import (
    Panel,
    draw_arms,
    draw_panels,
    styles_of,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_COLUMNS = 10
"""Trials that a table shows."""


def draw(claim: Claim, path: Path) -> None:
    styles = styles_of(claim)
    drawn: list[Panel] = []
    for task, arms in claim.tasks.items():
        drawn += [progress(claim, task, arms, styles), _per_trial(task, arms, styles)]
    draw_panels(drawn, path)


def table(claim: Claim) -> str:
    """Return per trial in the final test, means over seeds, and what probes counted."""
    return "\n\n".join(part for part in (_trials_table(claim), counted_table(claim)) if part)


def _trials_table(claim: Claim) -> str:
    rows = []
    for task, arms in claim.tasks.items():
        for arm in arms:
            returns = [_returns(run.result) for run in arm.runs if _returns(run.result)]
            cells = [number(mean(trial)) for trial in zip(*returns, strict=False)]
            rows.append([f"{task}: {arm.name}" if task else arm.name, *cells[:_MOST_COLUMNS]])
    width = max((len(row) for row in rows), default=1)
    if width == 1:
        return ""
    header = ["final test, return per trial", *(str(trial) for trial in range(1, width))]
    return markdown(header, [row + [""] * (width - len(row)) for row in rows])


def _per_trial(task: str, arms: Sequence[Arm], styles: Styles) -> Panel:
    def draw(axes: Axes) -> None:
        draw_arms(axes, arms, _curve, styles)
        results = [run.result or {} for arm in arms for run in arm.runs]
        scores = [result.get("reference_scores") or {} for result in results]
        lines = {}
        for name in ("random", "oracle"):
            found = [returns for score in scores if (returns := _returns(score.get(name)))]
            if found:
                shortest = min(map(len, found))
                lines[name] = np.mean([returns[:shortest] for returns in found], 0).tolist()
        panels.draw_references(axes, lines)
        axes.set(title=f"{task} trials in a new world".strip(), xlabel="trial",
                 ylabel="return per trial")  # fmt: skip
        whole_numbers(axes)

    return draw


def _curve(run: RunRecord) -> Curve:
    returns = np.array(_returns(run.result), np.float64)
    return np.arange(1.0, len(returns) + 1.0), returns


def _returns(score: Any) -> list[float]:
    return (score or {}).get("return_per_trial") or []
