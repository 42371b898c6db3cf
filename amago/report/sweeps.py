"""A whole sweep: its summary as a table, a picture and files."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from amago.presets.arms import arm_names
from amago.report.curves import plot_sweep
from amago.report.runs import Row, find_runs
from amago.report.tables import sweep_rows, sweep_table
from amago.rollout.scores import COMPARED

_CURVE_COLUMNS = (
    "epoch",
    "env_steps",
    "minutes",
    *(score.evaluation for score in COMPARED.values()),
)
_MOST_EVALUATIONS = 200


def summarise_sweep(root: str | Path, console: Console | None = None) -> list[Row]:
    """Write summary.json, .csv and .png and curves.csv into a sweep's folder, print the table."""
    folder = Path(root)
    groups = find_runs(folder)
    rows = sweep_rows(groups)
    (folder / "summary.json").write_text(json.dumps({"groups": rows}, indent=2) + "\n")
    write_csv(folder / "summary.csv", tuple(rows[0]), rows)
    curves = (
        {"group": group, "seed": run.seed, "minutes": run.minutes(row["epoch"]), **row}
        for group, runs in groups.items()
        for run in runs
        for row in thin(run.evaluations)
    )
    write_csv(folder / "curves.csv", ("group", "seed", *_CURVE_COLUMNS), curves)
    plot_sweep(groups, folder / "summary.png")
    console = console or Console()
    names = arm_names(groups)
    below = [names[row["group"]] for row in rows if row["not_better_than_random"]]
    if below:
        console.print(f"[bold]Not better than random play[/]: {escape('; '.join(below))}")
    console.print(sweep_table(groups))
    return rows


def thin(rows: Sequence[Row], most: int = _MOST_EVALUATIONS) -> list[Row]:
    """At most so many rows, evenly spread, the first and the last among them."""
    if len(rows) <= most:
        return list(rows)
    return [rows[round(index * (len(rows) - 1) / (most - 1))] for index in range(most)]


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Some columns of some rows; a missing value is an empty cell."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({column: _cell(row.get(column)) for column in columns})


def _cell(value: Any) -> Any:
    """Lists as numbers with spaces between, since a comma ends the cell."""
    if isinstance(value, list | tuple):
        return " ".join("" if item is None else f"{_cell(item)}" for item in value)
    return f"{value:.6g}" if isinstance(value, float) else value
