"""Updates per second over context length, from data/rates.csv; GPUs that nobody measured are open.

Reads what `python -m amago.bench.context_length` writes.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from amago.report.curves import arm_styles
from amago.reproduce.claims.claim import Claim
from amago.reproduce.claims.markdown import markdown
from amago.reproduce.views.figure import Panel, draw_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OPEN = ("a consumer GPU", "a data-centre GPU")
_Row = dict[str, str]


def draw(claim: Claim, path: Path) -> None:
    rows = _rows(claim)
    draw_panels([_panel(device, rows) for device in dict.fromkeys(r["device"] for r in rows)], path)


def table(claim: Claim) -> str:
    """A row per device and arrangement; devices that nobody measured have dashes."""
    rows = _rows(claim)
    lengths = sorted({int(row["context"]) for row in rows})
    arrangements = list(dict.fromkeys(row["arrangement"] for row in rows))
    devices = list(dict.fromkeys(row["device"] for row in rows))
    rates = {(r["device"], r["arrangement"], int(r["context"])): r["updates_per_second"]
             for r in rows}  # fmt: skip
    open_rows = _OPEN if not any("GPU" in d or "NVIDIA" in d for d in devices) else ()
    lines = []
    for device in (*devices, *open_rows):
        for name in arrangements:
            found = [rates.get((device, name, length)) for length in lengths]
            cells = ["–" if rate is None else f"{float(rate):.2f}" for rate in found]
            lines.append([device, name, *cells])
    return markdown(["device", "updates per second", *(f"{n:,}" for n in lengths)], lines)


def _panel(device: str, rows: list[_Row]) -> Panel:
    def draw(axes: Axes) -> None:
        own = [row for row in rows if row["device"] == device]
        names = list(dict.fromkeys(row["arrangement"] for row in own))
        styles = arm_styles(names)
        for name in names:
            points = [(int(row["context"]), float(row["updates_per_second"]))
                      for row in own if row["arrangement"] == name]  # fmt: skip
            axes.plot(*zip(*points, strict=True), marker="o", label=name, **styles[name])
        lengths = sorted({int(row["context"]) for row in own})
        axes.set(title=device, xlabel="context length", ylabel="updates per second")
        axes.set_xscale("log")
        axes.set_xticks(lengths, [f"{at:,}" for at in lengths], fontsize=7)
        axes.minorticks_off()
        axes.set_ylim(bottom=0)

    return draw


def _rows(claim: Claim) -> list[_Row]:
    with (claim.folder / "data" / "rates.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
