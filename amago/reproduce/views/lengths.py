"""Success by the number of goals that an instruction has, beside what single goals promise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from amago.report import panels
from amago.report.curves import Curve
from amago.report.runs import RunRecord
from amago.reproduce.claims.claim import Claim
from amago.reproduce.claims.markdown import markdown
from amago.reproduce.claims.probes import probe_rows
from amago.reproduce.claims.scores import mean
from amago.reproduce.views.figure import draw_arms, draw_panels, styles_of, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PROBE = "lengths"


def draw(claim: Claim, path: Path) -> None:
    styles = styles_of(claim)

    def panel(axes: Axes) -> None:
        draw_arms(axes, claim.arms, _curve, styles)
        for arm in claim.arms:
            single = mean([_success(run).get(1) for run in arm.runs])
            longest = max((length for run in arm.runs for length in _success(run)), default=0)
            if single is not None and longest > 1:
                lengths = np.arange(1, longest + 1)
                axes.plot(lengths, single**lengths, linestyle=":", linewidth=1.2,
                          color=styles[arm.name]["color"])  # fmt: skip
        axes.plot([], [], color="#777777", linestyle=":", label="single goals, independent")
        axes.set(title=claim.arms[0].task, xlabel="goals in the instruction", ylabel="success")
        axes.set_ylim(-0.03, 1.03)
        whole_numbers(axes)
        panels.label_shares(axes)

    draw_panels([panel], path)


def table(claim: Claim) -> str:
    """Success by length, means over seeds."""
    lengths = sorted({n for arm in claim.arms for run in arm.runs for n in _success(run)})
    rows = []
    for arm in claim.arms:
        means = [mean([_success(run).get(length) for run in arm.runs]) for length in lengths]
        rows.append([arm.name, *("–" if m is None else f"{100 * m:.0f}%" for m in means)])
    return markdown(["goals in the instruction", *map(str, lengths)], rows)


def _curve(run: RunRecord) -> Curve:
    success = _success(run)
    return np.array(list(success), np.float64), np.array(list(success.values()), np.float64)


def _success(run: RunRecord) -> dict[int, float]:
    """By length, from the probe, or else from the final test."""
    rows = probe_rows(run, PROBE)
    known: Mapping[str, Any] | None = (
        rows[-1].get("by_length") if rows else (run.result or {}).get("success_by_length")
    )
    return {int(length): float(row["success_rate"]) for length, row in (known or {}).items()}
