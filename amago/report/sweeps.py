"""A whole sweep: its summary, and the small evidence of it that belongs into git."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from amago.report.curves import plot_sweep
from amago.report.runs import EVALUATIONS, Row, Run, find_runs
from amago.report.tables import sweep_rows, sweep_table

SUMMARY_FILES = ("summary.json", "summary.csv", "curves.csv", "summary.png")
SUITE_FILES = ("suite.json", "suite.csv", "suite.png")
CURVE_COLUMNS = ("epoch", "env_steps", "eval/return_mean", "eval/success_rate")
EVALUATION_COLUMNS = (
    "epoch", "env_steps", "updates", "eval/return_mean", "eval/return_std",
    "eval/success_rate", "eval/episodes", "eval/return_per_block",
    "loss/critic", "policy/entropy", "grad/norm",
)  # fmt: skip
MOST_EVALUATIONS = 200


def summarise(root: str | Path, console: Console | None = None) -> list[Row]:
    """Write summary.json, .csv and .png and curves.csv into a sweep's folder, print the table."""
    folder = Path(root)
    groups = find_runs(folder)
    rows = sweep_rows(groups)
    (folder / "summary.json").write_text(json.dumps({"groups": rows}, indent=2) + "\n")
    write_csv(folder / "summary.csv", tuple(rows[0]), rows)
    curves = (
        {"group": group, "seed": run.seed, **row}
        for group, runs in groups.items()
        for run in runs
        for row in thin(run.evaluations)
    )
    write_csv(folder / "curves.csv", ("group", "seed", *CURVE_COLUMNS), curves)
    plot_sweep(groups, folder / "summary.png")
    (console or Console()).print(sweep_table(groups))
    return rows


def export(root: str | Path, results_dir: str | Path, command: str | None = None) -> Path:
    """Copy the evidence of a sweep, without checkpoints and replay, to a folder for git."""
    source, target = Path(root), Path(results_dir)
    groups = find_runs(source)
    recorded = source / "command.txt"
    if command is None and not recorded.is_file():
        raise ValueError(
            f"expected the command of this sweep in {recorded}, found no such file; "
            "pass it as `command`, so that others can repeat the runs"
        )
    if any(not (source / name).is_file() for name in SUMMARY_FILES):
        raise ValueError(f"expected {', '.join(SUMMARY_FILES)} in {source}; summarise it first")
    target.mkdir(parents=True, exist_ok=True)
    for name in (*SUMMARY_FILES, *(name for name in SUITE_FILES if (source / name).is_file())):
        shutil.copyfile(source / name, target / name)
    text = recorded.read_text() if command is None else command
    (target / "command.txt").write_text(text.rstrip("\n") + "\n")
    (target / "commit.txt").write_text(_commits(groups))
    for group, runs in groups.items():
        for run in runs:
            _export_run(run, target / group / run.path.name)
    return target


def thin(rows: Sequence[Row], most: int = MOST_EVALUATIONS) -> list[Row]:
    """At most so many rows, evenly spread, the first and the last among them."""
    if len(rows) <= most:
        return list(rows)
    return [rows[round(index * (len(rows) - 1) / (most - 1))] for index in range(most)]


def _export_run(run: Run, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(run.path / "config.json", target / "config.json")
    if run.result is not None:
        shutil.copyfile(run.path / "result.json", target / "result.json")
    write_csv(target / EVALUATIONS, EVALUATION_COLUMNS, thin(run.evaluations))


def _commits(groups: Mapping[str, Sequence[Run]]) -> str:
    """Every commit that made runs of the sweep, with the runs if there is more than one."""
    made: dict[str, list[str]] = {}
    for group, runs in groups.items():
        for run in runs:
            made.setdefault(run.git_commit or "unknown", []).append(f"{group}/{run.path.name}")
    if len(made) == 1:
        return next(iter(made)) + "\n"
    return "".join(f"{commit} {' '.join(names)}\n" for commit, names in made.items())


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
