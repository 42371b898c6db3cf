"""Progress on a hard goal asked for alone, and on a plan that ends in it, over training.

The probe "plans" asks for both at every kept checkpoint. Progress is the return as a share of the
instruction's goals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from amago.report import panels
from amago.report.curves import Curve, Styles, arm_styles, draw_arm
from amago.report.runs import RunRecord
from amago.reproduce.claims.claim import Arm, Claim
from amago.reproduce.claims.markdown import markdown
from amago.reproduce.claims.probes import AS_DRAWN, probe_rows, split_goals
from amago.reproduce.views.figure import Panel, draw_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PROBE = "plans"
_KINDS = ("the goal alone", "a plan that ends in it")


def draw(claim: Claim, path: Path) -> None:
    styles = arm_styles([_label(arm, kind) for arm in claim.arms for kind in _KINDS])
    draw_panels([_panel(goal, claim.arms, styles) for goal in _goals(claim)], path)


def table(claim: Claim) -> str:
    """Progress at the last checkpoint, means over seeds."""
    goals = _goals(claim)
    rows = []
    for arm in claim.arms:
        for kind in _KINDS:
            ends = [[_curve(run, goal, kind)[1] for run in arm.runs] for goal in goals]
            cells = [_percent([y[-1] for y in seeds if len(y)]) for seeds in ends]
            rows.append([_label(arm, kind), *cells])
    return markdown(["progress at the end", *goals], rows)


def _panel(goal: str, arms: Sequence[Arm], styles: Styles) -> Panel:
    def draw(axes: Axes) -> None:
        for arm in arms:
            for kind in _KINDS:
                label = _label(arm, kind)
                draw_arm(axes, [_curve(run, goal, kind) for run in arm.runs], label, styles[label])
        axes.set(title=goal, xlabel="epoch", ylabel="progress")
        axes.set_ylim(-0.03, 1.03)
        panels.label_shares(axes)

    return draw


def _curve(run: RunRecord, goal: str, kind: str) -> Curve:
    """Epochs and progress: single goals have one part, plans several."""
    found: dict[int, list[float]] = defaultdict(list)
    for row in probe_rows(run, PROBE):
        parts = split_goals(row["instruction"])
        if parts[-1] == goal and (len(parts) == 1) == (kind == _KINDS[0]):
            found[row["epoch"]].append(row["success_return"] / len(parts))
    epochs = sorted(found)
    return np.array(epochs, np.float64), np.array([np.mean(found[e]) for e in epochs], np.float64)


def _goals(claim: Claim) -> list[str]:
    """The goals that plans end in, in the order of the probe."""
    asked = [row["instruction"] for arm in claim.arms for run in arm.runs
             for row in probe_rows(run, PROBE)]  # fmt: skip
    plans = (split_goals(text) for text in asked if text != AS_DRAWN)
    return list(dict.fromkeys(goals[-1] for goals in plans if len(goals) > 1))


def _label(arm: Arm, kind: str) -> str:
    return f"{arm.name}: {kind}"


def _percent(values: Sequence[float]) -> str:
    return f"{100 * float(np.mean(values)):.0f}%" if len(values) else "–"
