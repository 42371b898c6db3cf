"""What probes counted, beside what others measured with the authors' code in the same shape."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from amago.report.panels import PALETTE
from amago.reproduce.claims.claim import Claim
from amago.reproduce.claims.counted import counted_table, names_of, probes_of, seeds_of
from amago.reproduce.claims.markdown import wrapped
from amago.reproduce.claims.scores import mean
from amago.reproduce.published import AUTHORS_STEPS, authors_scores
from amago.reproduce.views.curves import progress
from amago.reproduce.views.figure import Panel, draw_panels, styles_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_THEIRS = "the authors' code"
_SOURCE = (
    "The authors' code: amago 3.4.0, trained by others (github Jiaweeeeeen/RSM-ICLR, read "
    "second-hand), 3 seeds, the last checkpoint, greedy, 256 worlds that training does not meet, "
    f"after {AUTHORS_STEPS:,} environment steps."
)


def draw(claim: Claim, path: Path) -> None:
    """Training, and one panel per probe."""
    styles = styles_of(claim)
    drawn = [progress(claim, task, arms, styles) for task, arms in claim.tasks.items()]
    draw_panels([*drawn, *(_panel(claim, probe) for probe in probes_of(claim))], path)


def table(claim: Claim) -> str:
    """Every probe and arm: our mean and seeds, random play, and what others have."""
    steps = mean([(run.result or {}).get("env_steps") for arm in claim.arms for run in arm.runs])
    used = "" if steps is None else f" Ours: {round(steps):,} environment steps a run."
    return f"{counted_table(claim, authors_scores(), _THEIRS)}\n\n{wrapped(_SOURCE + used)}"


def _panel(claim: Claim, probe: str) -> Panel:
    theirs = authors_scores().get(probe, {})
    names = names_of(claim, theirs)

    def draw(axes: Axes) -> None:
        for row, name in enumerate(names):
            if seeds := seeds_of(claim, probe, name):
                axes.barh(row, fmean(seeds), height=0.6, color=PALETTE[0], alpha=0.6,
                          label="ours, mean" if row == 0 else None)  # fmt: skip
                axes.plot(seeds, [row] * len(seeds), ".", color=PALETTE[0],
                          label="ours, seeds" if row == 0 else None)  # fmt: skip
            if (other := theirs.get(name)) is not None:
                low, high = other.low or other.value, other.high or other.value
                axes.errorbar(other.value, row, xerr=[[other.value - low], [high - other.value]],
                              marker="D", color="black", capsize=3, linestyle="none",
                              label=_THEIRS if row == 0 else None)  # fmt: skip
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.set_ylim(len(names) - 0.4, -0.6)  # the first one on top
        axes.set_xlim(left=0.0)
        axes.set(title=probe)

    return draw
