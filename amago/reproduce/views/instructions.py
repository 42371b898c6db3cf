"""Success per instruction: bars over arms, the average return at their ends, and a table.

The probe is "instructions". Where the paper has a column for an arm of this name, it stands in the
table, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from amago.report.panels import PALETTE
from amago.reproduce.claims.claim import Arm, Claim
from amago.reproduce.claims.markdown import markdown, wrapped
from amago.reproduce.claims.probes import AS_DRAWN, probe_rows, split_goals
from amago.reproduce.claims.scores import known, mean
from amago.reproduce.published import crafter_scores
from amago.reproduce.views.figure import draw_tall

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PROBE = "instructions"
_RANDOM = "random play"


def draw(claim: Claim, path: Path) -> None:
    asked = _asked(claim)
    columns = [*(arm.name for arm in claim.arms), _RANDOM]
    thickness = 0.86 / len(columns)

    def panel(axes: Axes) -> None:
        for index, name in enumerate(columns):
            places = np.arange(len(asked)) + (index - (len(columns) - 1) / 2) * thickness
            shares = [_score(claim, name, text, "success") or 0.0 for text in asked]
            color = "#BBBBBB" if name == _RANDOM else PALETTE[index % len(PALETTE)]
            axes.barh(places, shares, height=thickness * 0.9, color=color, label=name)
            for place, share, text in zip(places, shares, asked, strict=True):
                earned = _score(claim, name, text, "success_return")
                if earned is not None and name != _RANDOM:
                    axes.text(share + 0.01, place, f"{earned:.2f}", va="center", fontsize=6)
        axes.set_yticks(range(len(asked)), [_short(text) for text in asked], fontsize=8)
        axes.set_ylim(len(asked) - 0.4, -0.6)  # the first one on top
        axes.set_xlim(0.0, 1.1)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0])
        axes.set_xlabel("success; at the end of a bar the average return")

    draw_tall(panel, len(asked) * max(3, len(columns)), path)


def table(claim: Claim) -> str:
    """Success in percent, means over seeds, beside random play and the paper."""
    published, asked = crafter_scores(), _asked(claim)
    paper = [
        arm.name
        for arm in claim.arms
        if len(set(published.get(arm.name, ())) & set(asked)) > len(asked) / 2
    ]
    names = [*(arm.name for arm in claim.arms), _RANDOM]
    rows = []
    for text in asked:
        cells = [_percent(_score(claim, name, text, "success")) for name in names]
        cells += [_percent(published[name].get(text)) for name in paper]
        rows.append([text.strip("()"), *cells])
    header = ["success", *names, *(f"paper: {name}" for name in paper)]
    source = "The paper's columns are those of its Tables 1 and 2." if paper else ""
    return "\n\n".join(part for part in (markdown(header, rows), wrapped(source)) if part)


def _score(claim: Claim, name: str, instruction: str, key: str) -> float | None:
    arms: Sequence[Arm] = [arm for arm in claim.arms if name in (arm.name, _RANDOM)]
    key = key.replace("success", "random") if name == _RANDOM else key
    found = [
        row.get(key)
        for arm in arms
        for run in arm.runs
        for row in probe_rows(run, PROBE)
        if row["instruction"] == instruction
    ]
    return mean(known(found))


def _asked(claim: Claim) -> list[str]:
    rows = [row for arm in claim.arms for run in arm.runs for row in probe_rows(run, PROBE)]
    asked = list(dict.fromkeys(row["instruction"] for row in rows))
    return sorted(asked, key=lambda text: text == AS_DRAWN)


def _short(text: str) -> str:
    return "all instructions, as drawn" if text == AS_DRAWN else ",\n".join(split_goals(text))


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}%"
