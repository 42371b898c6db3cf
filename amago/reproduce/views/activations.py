"""Largest activations of a Transformer over training: residual stream, queries, keys, values."""

from __future__ import annotations

from pathlib import Path

from amago.report.tables import number
from amago.reproduce.claims.claim import Claim
from amago.reproduce.claims.markdown import markdown
from amago.reproduce.claims.scores import mean
from amago.reproduce.views.curves import progress
from amago.reproduce.views.figure import Panel, draw_panels, metric_panel, styles_of

NEEDS = ("activation/",)
_PARTS = {"residual": "residual stream", "query": "queries", "key": "keys", "value": "values"}


def draw(claim: Claim, path: Path) -> None:
    styles = styles_of(claim)
    drawn: list[Panel] = []
    for task, arms in claim.tasks.items():
        for name, title in _PARTS.items():
            key, head = f"activation/{name}", f"{task} {title}".strip()
            drawn.append(metric_panel(arms, key, head, "largest magnitude", styles, log=True))
        drawn.append(progress(claim, task, arms, styles))
    draw_panels(drawn, path)


def table(claim: Claim) -> str:
    """The largest activation of the whole training, means over seeds."""
    rows = []
    for arm in claim.arms:
        cells = []
        for name in _PARTS:
            key = f"activation/{name}"
            seeds = [[row[key] for row in run.metrics if key in row] for run in arm.runs]
            cells.append(number(mean([max(values) for values in seeds if values])))
        rows.append([f"{arm.task}: {arm.name}" if arm.task else arm.name, *cells])
    return markdown(["largest activation in training", *_PARTS.values()], rows)
