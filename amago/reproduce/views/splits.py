"""Success in the tasks of training and in held-out ones, over context lengths.

Arms are called "context N"; the probes are "train" and "held-out".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from amago.report import panels
from amago.report.panels import PALETTE
from amago.reproduce.claims.claim import Arm, Claim
from amago.reproduce.claims.markdown import markdown
from amago.reproduce.claims.probes import probe_score
from amago.reproduce.claims.scores import known, mean
from amago.reproduce.views.figure import Panel, draw_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SPLITS = ("train", "held-out")


def draw(claim: Claim, path: Path) -> None:
    draw_panels([_panel(task, arms) for task, arms in claim.tasks.items()], path)


def table(claim: Claim) -> str:
    """Success of both kinds of tasks, means over seeds."""
    rows = []
    for task, arms in claim.tasks.items():
        for arm in arms:
            means = [mean(_successes(arm, split)) for split in _SPLITS]
            cells = ["–" if value is None else f"{100 * value:.0f}%" for value in means]
            rows.append([f"{task}: {arm.name}" if task else arm.name, *cells])
    return markdown(["best checkpoint, success", *_SPLITS], rows)


def _panel(task: str, arms: Sequence[Arm]) -> Panel:
    def draw(axes: Axes) -> None:
        for split, color in zip(_SPLITS, PALETTE, strict=False):
            found = [(_length(arm), known(_successes(arm, split))) for arm in arms]
            points = sorted((at, seeds) for at, seeds in found if seeds)
            axes.plot([at for at, _ in points], [sum(s) / len(s) for _, s in points],
                      marker="o", color=color, label=split)  # fmt: skip
            for at, seeds in points:
                axes.plot([at] * len(seeds), seeds, ".", color=color, alpha=0.5)
        axes.set(title=task, xlabel="context length", ylabel="success")
        lengths = sorted({_length(arm) for arm in arms})
        axes.set_xscale("log")
        axes.set_xticks(lengths, [str(at) for at in lengths])
        axes.minorticks_off()
        axes.set_ylim(-0.03, 1.03)
        panels.label_shares(axes)

    return draw


def _length(arm: Arm) -> int:
    """The context length in the name of an arm."""
    return int(arm.name.removeprefix("context "))


def _successes(arm: Arm, split: str) -> list[float | None]:
    return [probe_score(run, split) for run in arm.runs]
