"""Results as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from amago.bench.results import Result


def result_table(results: Sequence[Result], changes: Sequence[str] | None = None) -> Table:
    """`changes`, one per result, since the last comparable run."""
    table = Table()
    for name in ("case", "setting", "value", "± half IQR", "yardstick", "ratio", "target", "met"):
        table.add_column(
            name, justify="right" if name in ("value", "± half IQR", "ratio") else "left"
        )
    if changes is not None:
        table.add_column("change")
    for index, result in enumerate(results):
        cells = [
            result.case,
            result.setting,
            result.note if result.value is None else f"{number(result.value)} {result.unit}",
            "–" if result.spread is None else number(result.spread / 2),
            result.yardstick or "–",
            "–" if result.ratio is None else number(result.ratio),
            "–" if result.target is None else str(result.target),
            _verdict(result),
        ]
        table.add_row(*cells, *([] if changes is None else [changes[index]]))
    if any(result.disturbed for result in results):
        table.caption = "~ other processes disturbed this measurement: do not trust it"
    return table


def _verdict(result: Result) -> str:
    mark = {None: "", True: "yes", False: "no"}[result.met]
    return f"{mark} ~".strip() if result.disturbed else mark


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
