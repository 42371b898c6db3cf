"""What a person sees of a run while it goes on."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from amago.rollout.scores import SHOWN

_PARTS = {"rollout": "", "eval": "eval "}
"""Parts of the metrics that have scores, and what the live view calls them."""
COLUMNS = (
    *(
        (prefix + score.label, f"{part}/{score.key}")
        for part, prefix in _PARTS.items()
        for score in SHOWN
        if part in score.live
    ),
    ("random play", "random/return_mean"),
    ("critic loss", "loss/critic"),
    ("actor loss", "loss/actor"),
    ("entropy", "policy/entropy"),
    ("env steps/s", "env_steps_per_second"),
    ("updates/s", "updates_per_second"),
)
_RARE_COLUMNS = (
    ("collectors", "collectors"),
    ("collectors lost", "collectors_lost"),
    ("mean lag", "lag_mean"),
    ("most lag", "lag_max"),
    ("learners", "learners"),
    ("restarts", "env/restarts"),
    ("damaged", "replay/damaged"),
)
"""Shown where other processes play or learn, and from the first time that a lane or a trajectory
is lost."""


_PADDING = 2
"""Blank columns around a cell of a table."""


class View(Protocol):
    def begin(self, folder: Path) -> None:
        """The run exists, here."""

    def phase(self, name: str, fraction: float = 0.0) -> None:
        """What is going on within the epoch, and how far it is."""

    def epoch(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        """One epoch is complete."""

    def close(self) -> None: ...


class Silent:
    """For programs."""

    def begin(self, folder: Path) -> None: ...

    def phase(self, name: str, fraction: float = 0.0) -> None: ...

    def epoch(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None: ...

    def close(self) -> None: ...


class _PlainView:
    """For logs and pipes: one line per epoch."""

    def __init__(self, epochs: int) -> None:
        self.epochs, self._seconds, self._seen = epochs, 0.0, 0

    def begin(self, folder: Path) -> None:
        print(f"run folder: {folder}", flush=True)

    def phase(self, name: str, fraction: float = 0.0) -> None: ...

    def epoch(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        self._seconds += timing["seconds"]
        self._seen += 1
        left = (self.epochs - metrics["epoch"]) * self._seconds / self._seen
        values = {**metrics, **timing}
        columns = (*COLUMNS, *_RARE_COLUMNS)
        cells = [f"{label} {number(values[key])}" for label, key in columns if key in values]
        head = f"epoch {metrics['epoch']}/{self.epochs}"
        print(" | ".join([head, *cells, f"left {_duration(left)}"]), flush=True)

    def close(self) -> None: ...


class _LiveView:
    """For a terminal: a progress bar and a table that stay in place."""

    def __init__(self, epochs: int, done: int, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.fields[phase]:<12}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = self._progress.add_task("train", total=epochs, completed=done, phase="start")
        self._done = done
        self._values: dict[str, Any] = {}
        self._live = Live(self._render(), console=console, refresh_per_second=4)

    def begin(self, folder: Path) -> None:
        self._live.console.print(f"run folder: {folder}", highlight=False)
        self._live.start()

    def phase(self, name: str, fraction: float = 0.0) -> None:
        self._progress.update(self._task, phase=name)
        if fraction:
            self._progress.update(self._task, completed=self._done + min(fraction, 0.99))

    def epoch(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        self._done = metrics["epoch"]
        self._values |= {**metrics, **timing}
        self._progress.update(self._task, completed=self._done)
        self._live.update(self._render())

    def close(self) -> None:
        self._live.stop()

    def _render(self) -> RenderableType:
        known = {label: number(self._values[key])
                 for label, key in (*COLUMNS, *_RARE_COLUMNS) if key in self._values}  # fmt: skip
        tables = []
        for labels in _lines_of_columns(known, self._progress.console.width):
            table = Table(expand=True, box=None)
            for label in labels:
                table.add_column(label.replace(" ", "\n"), justify="right", no_wrap=True)
            table.add_row(*(known[label] for label in labels))
            tables.append(table)
        return Group(self._progress, *tables)


def _lines_of_columns(cells: Mapping[str, str], width: int) -> list[list[str]]:
    """The labels of as many columns to a line as are not cut off; labels break at spaces."""
    lines, left = list[list[str]](), 0
    for label, cell in cells.items():
        needed = max(map(len, (*label.split(), cell))) + _PADDING
        if needed > left or not lines:
            lines.append([])
            left = width
        lines[-1].append(label)
        left -= needed
    return lines


def make_view(epochs: int, done: int = 0) -> View:
    """A live view in a terminal and in a notebook, plain lines elsewhere."""
    from amago.training.notebook import NotebookView, in_notebook

    if in_notebook():
        return NotebookView(epochs, done)
    console = Console()
    if console.is_terminal and sys.stdout.isatty():
        return _LiveView(epochs, done, console)
    return _PlainView(epochs)


def view_like(view: View, epochs: int) -> View:
    """What shows one more training: as the first one where that is a view of ours; beside a
    caller's own view, nothing."""
    from amago.training.notebook import NotebookView

    ours = isinstance(view, _LiveView | _PlainView | NotebookView)
    return make_view(epochs) if ours else Silent()


def number(value: float) -> str:
    """A metric in a few digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
