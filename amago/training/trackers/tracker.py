"""What every tracker does, and the numbers that it is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from amago.config import Config
from amago.saved.files import read_rows
from amago.saved.header import read_header

Row = dict[str, Any]
_COUNTS = ("seed", "epochs", "env_steps", "updates", "seconds", "episodes")
"""Entries of result.json that are not scores."""


@dataclass(frozen=True)
class Pictures:
    """What was drawn and filmed at the end of a run."""

    curves: bytes | None = None
    """A PNG file."""
    film: bytes | None = None
    """A GIF file."""


class Tracker(Protocol):
    def log(self, metrics: Row, timing: Row) -> None:
        """One epoch, which metrics.jsonl and timing.jsonl already have."""

    def end(self, result: Row, pictures: Pictures) -> None:
        """The run is complete."""

    def close(self) -> None: ...


def stored_rows(folder: Path) -> list[tuple[Row, Row]]:
    """Metrics and timing of every epoch that a run folder has."""
    metrics, timing = (read_rows(folder / f"{name}.jsonl") for name in ("metrics", "timing"))
    return list(zip(metrics, timing, strict=False))


def scalars(metrics: Row, timing: Row) -> dict[str, float]:
    """The single numbers of an epoch; lists are for tables and pictures."""
    return {
        name: value
        for name, value in {**metrics, **timing}.items()
        if isinstance(value, (int, float)) and name != "epoch"
    }


def final_scores(result: Row) -> dict[str, float]:
    """The scores of result.json, and the pooled ones that are to be quoted."""
    single = {name: value for name, value in result.items() if name not in _COUNTS}
    pooled = {f"pooled_{name}": value for name, value in result.get("pooled", {}).items()}
    return {
        f"final/{name}": value
        for name, value in {**single, **pooled}.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def axis(config: Config) -> str:
    """What curves are drawn over: a run that begins offline has no steps at first."""
    return "updates" if config.rollout.offline_epochs else "env_steps"


def about(folder: Path) -> Row:
    """What a run is, besides its settings."""
    header = read_header(folder)
    return {name: header.get(name) for name in ("preset", "seed", "version", "git_commit")}
