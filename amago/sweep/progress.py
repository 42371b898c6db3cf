"""What a sweep shows while it runs: states, last epochs and returns, time to go."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich import box
from rich.console import Group
from rich.table import Table

from amago.sweep.jobs import Job, short_names

_State = Literal["queued", "running", "done", "failed", "pruned"]
_TAIL_BYTES = 1 << 16


@dataclass
class Progress:
    """One job as the sweep sees it."""

    job: Job
    state: _State = "queued"
    started: float = 0.0
    """time.monotonic() of the start in this session."""
    first_epoch: int = 0
    """Epochs that earlier sessions had already made."""
    epoch: int = 0
    epochs: int | None = None
    last_return: float | None = None
    note: str = ""
    pruned: bool = False
    """Whether the run was asked to end before its time."""
    metrics_size: int = field(default=-1, repr=False)

    def start(self) -> None:
        self.state = "running"
        self.read()
        self.first_epoch = self.epoch
        self.started = time.monotonic()

    def read(self) -> None:
        """Update from the run folder, which the child writes."""
        self.epochs = self.epochs or _planned_epochs(self.job.run_dir)
        path = self.job.run_dir / "metrics.jsonl"
        size = path.stat().st_size if path.is_file() else 0
        if size == self.metrics_size:
            return
        self.metrics_size = size
        row = _last_row(path)
        self.epoch = int(row.get("epoch", 0))
        self.last_return = row.get("rollout/return_mean", row.get("rollout/return"))

    def seconds_per_epoch(self, now: float) -> float | None:
        made = self.epoch - self.first_epoch
        return (now - self.started) / made if made > 0 else None


def _planned_epochs(run_dir: Path) -> int | None:
    """The number of epochs in a run's config.json; None when it is not there yet."""
    try:
        return int(json.loads((run_dir / "config.json").read_text())["config"]["run"]["epochs"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _last_row(path: Path) -> dict[str, Any]:
    """The last whole row of a growing JSONL file, found from its end; empty if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return {}
    for line in reversed(lines):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            return row
    return {}


def _seconds_left(jobs: Sequence[Progress], num_parallel: int, now: float) -> float | None:
    """Time to go, from the pace of this session's runs; None until one has made an epoch."""
    running = [item for item in jobs if item.state == "running"]
    whole: list[float] = []
    left = 0.0
    for item in jobs:
        pace = item.seconds_per_epoch(now) if item.state in ("running", "done") else None
        if pace is None or item.epochs is None:
            continue
        whole.append(pace * item.epochs)
        if item.state == "running":
            left += pace * max(0, item.epochs - item.epoch)
    if not whole:
        return None
    unknown = [item for item in running if item.seconds_per_epoch(now) is None]
    queued = sum(item.state == "queued" for item in jobs)
    left += (queued + len(unknown)) * sum(whole) / len(whole)
    return left / max(1, min(num_parallel, len(running) + queued))


def _counts(jobs: Sequence[Progress]) -> Mapping[_State, int]:
    """How many jobs are in each state."""
    states: tuple[_State, ...] = ("queued", "running", "done", "failed")
    counts = {state: sum(item.state == state for item in jobs) for state in states}
    ended = sum(item.state == "pruned" for item in jobs)
    return {**counts, "pruned": ended} if ended else counts


def headline(jobs: Sequence[Progress], num_parallel: int, now: float) -> str:
    """One line: states and time to go."""
    text = ", ".join(f"{number} {state}" for state, number in _counts(jobs).items())
    left = _seconds_left(jobs, num_parallel, now)
    return f"sweep: {text}" + ("" if left is None else f", about {_duration(left)} to go")


def live_table(jobs: Sequence[Progress], num_parallel: int, now: float) -> Group:
    """The running jobs under the headline."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("running", overflow="fold")
    for column in ("epoch", "return", "time"):
        table.add_column(column, justify="right")
    names = short_names(item.job for item in jobs)
    for item in jobs:
        if item.state == "running":
            latest = "–" if item.last_return is None else f"{item.last_return:.3f}"
            epoch = f"{item.epoch} of {item.epochs or '?'}"
            table.add_row(names[item.job.run_dir], epoch, latest, _duration(now - item.started))
    return Group(headline(jobs, num_parallel, now), table)


def _duration(seconds: float) -> str:
    """Seconds as people say them: 45 s, 12 min, 3 h 05 min."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
