"""The board as rows, as a table of the terminal and as Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich import box
from rich.table import Table

from amago.board.reached import Reached, best_score, median_minutes, reached
from amago.board.tasks import TASKS, BoardTask
from amago.report.runs import RunRecord, find_runs

_HEADER = ("task", "bar", "method", "minutes", "wanted", "updates", "seeds at the bar", "best")


@dataclass(frozen=True)
class _BoardRow:
    """All seeds of one task and method."""

    task: str
    method: str
    seeds: tuple[int, ...]
    spent: tuple[Reached | None, ...]
    """Per seed; None where the bar was not reached."""
    best: tuple[float | None, ...]
    """Per seed, the best evaluation."""

    @property
    def cells(self) -> tuple[str, ...]:
        """What the columns of the header say of this row."""
        task = TASKS[self.task]
        arrived = [one for one in self.spent if one is not None]
        minutes = median_minutes(self.spent)
        return (
            self.task,
            _score(task, task.bar),
            self.method,
            "–" if minutes is None else f"{minutes:.1f}",
            f"{task.minutes:g}",
            f"{median(one.updates for one in arrived):,.0f}" if arrived else "–",
            f"{len(arrived)} of {len(self.spent)}",
            " ".join("–" if best is None else _score(task, best) for best in self.best),
        )


def board_rows(root: str | Path) -> list[_BoardRow]:
    """The board of a folder of runs, in the order of the tasks, methods by name."""
    groups = find_runs(root)
    rows = [_row(*_parts(group), runs) for group, runs in groups.items()]
    order = list(TASKS)
    return sorted(rows, key=lambda row: (order.index(row.task), row.method != "amago", row.method))


def terminal_table(rows: Sequence[_BoardRow]) -> Table:
    """The board for a terminal."""
    table = Table(title="The board", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in _HEADER:
        left = name in ("task", "method")
        table.add_column(
            name, justify="left" if left else "right", no_wrap=name == "method", overflow="fold"
        )
    for row in rows:
        table.add_row(*row.cells)
    return table


def markdown_table(rows: Sequence[_BoardRow]) -> str:
    """The board for a page."""
    lines = [_HEADER, ("---",) * len(_HEADER), *(row.cells for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def group_name(task: str, method: str) -> str:
    """The folder around the seeds of a task and method."""
    return f"{task}__{method}"


def _parts(group: str) -> tuple[str, str]:
    task, separator, method = group.partition("__")
    if not separator or task not in TASKS:
        raise ValueError(
            f"expected folders TASK__METHOD of `amago board`, got {group!r}; "
            "give the board a folder of its own with --root"
        )
    return task, method


def _row(task: str, method: str, runs: Sequence[RunRecord]) -> _BoardRow:
    bar = TASKS[task]
    return _BoardRow(
        task,
        method,
        tuple(run.seed for run in runs),
        tuple(reached(run, bar) for run in runs),
        tuple(best_score(run, bar) for run in runs),
    )


def _score(task: BoardTask, score: float) -> str:
    return f"{100 * score:.0f}%" if task.metric.percent else f"{score:.3g}"


def read_board(path: str | Path) -> list[_BoardRow]:
    """The board that a board.json holds; tasks that exist no longer are left out."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in json.loads(Path(path).read_text(encoding="utf-8")):
        if record["task"] in TASKS:
            found.setdefault((record["task"], record["method"]), []).append(record)
    return [
        _BoardRow(
            task,
            method,
            tuple(record["seed"] for record in records),
            tuple(record["reached"] and Reached(**record["reached"]) for record in records),
            tuple(record["best"] for record in records),
        )
        for (task, method), records in found.items()
    ]


def write_board(rows: Sequence[_BoardRow], root: str | Path) -> None:
    """Every seed as board.json, and the table as README.md, in a folder."""
    records = [
        {
            "task": row.task,
            "method": row.method,
            "seed": seed,
            "bar": TASKS[row.task].bar,
            "reached": None if spent is None else vars(spent),
            "best": best,
        }
        for row in rows
        for seed, spent, best in zip(row.seeds, row.spent, row.best, strict=True)
    ]
    (Path(root) / "board.json").write_text(json.dumps(records, indent=1) + "\n")
    (Path(root) / "README.md").write_text(markdown_table(rows))
