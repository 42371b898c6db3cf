"""Results as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from amago.bench.results import Result


def result_table(results: Sequence[Result], changes: Sequence[str] | None = None) -> Table:
    """`changes`, one per result, since the last comparable run."""
    table = Table(caption="± is half the inter-quartile range")
    for name in ("case", "setting", "value", "yardstick", "ratio", "target", "met"):
        table.add_column(name, justify="right" if name in ("value", "ratio") else "left")
    if changes is not None:
        table.add_column("change")
    case = ""
    for index, result in enumerate(results):
        if result.case != case:
            table.add_section()
            case = result.case
        cells = [
            result.case,
            result.setting,
            describe(result),
            result.yardstick or "–",
            "–" if result.ratio is None else _number(result.ratio),
            "–" if result.target is None else str(result.target),
            _verdict(result),
        ]
        table.add_row(*cells, *([] if changes is None else [changes[index]]))
    if any(result.disturbed for result in results):
        table.caption = f"{table.caption}; ~ disturbed by other processes: do not trust it"
    return table


def describe(result: Result) -> str:
    """The number of a result, with its spread, unit and note."""
    if result.value is None:
        return result.note
    spread = "" if result.spread is None else f" ± {_number(result.spread / 2)}"
    note = f" ({result.note})" if result.note else ""
    return f"{_number(result.value)}{spread} {result.unit}{note}"


def _verdict(result: Result) -> str:
    mark = {None: "", True: "yes", False: "no"}[result.met]
    return f"{mark} ~".strip() if result.disturbed else mark


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
