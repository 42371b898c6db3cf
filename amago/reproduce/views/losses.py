"""Losses, gradient norms and the score over training."""

from __future__ import annotations

from pathlib import Path

from amago.reproduce.claims.claim import Claim
from amago.reproduce.views.curves import progress
from amago.reproduce.views.figure import Panel, draw_panels, metric_panel, styles_of

NEEDS = ("loss/actor", "loss/critic", "grad/norm")


def draw(claim: Claim, path: Path) -> None:
    styles = styles_of(claim)
    drawn: list[Panel] = []
    for task, arms in claim.tasks.items():
        drawn += [
            metric_panel(arms, "loss/actor", f"{task}: actor loss", "loss", styles, log=True),
            metric_panel(arms, "loss/critic", f"{task}: critic loss", "loss", styles, log=True),
            metric_panel(arms, "grad/norm", f"{task}: gradients", "norm", styles, log=True),
            progress(claim, task, arms, styles),
        ]
    draw_panels(drawn, path)
