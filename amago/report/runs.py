"""Run folders, read back as plain records."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]
EVALUATIONS = "evals.csv"
"""What an exported run keeps of its metrics."""


@dataclass(frozen=True)
class RunRecord:
    """What a run folder says about itself; `result` is None until the run is complete."""

    name: str
    path: Path
    preset: str
    seed: int
    config: Row
    git_commit: str | None
    metrics: list[Row]
    timing: list[Row]
    result: Row | None
    method: str = "amago"
    """amago's own agent, or a baseline."""
    method_settings: Row | None = None
    """What a baseline had beside the configuration."""
    own_env: str = ""
    """What made the environment, if it was given from Python in place of an id."""

    @property
    def evaluations(self) -> list[Row]:
        """The epochs that were evaluated, in order."""
        return [row for row in self.metrics if row.get("eval/return_mean") is not None]

    def minutes(self, epoch: int) -> float | None:
        """Wall time when an epoch was complete; None where it was not timed."""
        exported = [
            row["minutes"] for row in self.metrics if row["epoch"] == epoch and "minutes" in row
        ]
        if exported:
            return float(exported[0])
        spent = [float(row["seconds"]) for row in self.timing if row["epoch"] <= epoch]
        return sum(spent) / 60 if len(spent) == epoch else None

    @property
    def seconds(self) -> float | None:
        """Wall time so far over all sessions; None when nothing was timed yet."""
        if self.result is not None and self.result.get("seconds") is not None:
            return float(self.result["seconds"])
        if not self.timing:
            return None
        return float(sum(row.get("seconds", 0.0) for row in self.timing))


def read_run(path: str | Path) -> RunRecord:
    """One run folder, finished or still growing."""
    folder = Path(path)
    if not (folder / "config.json").is_file():
        raise ValueError(
            f"expected a run folder with a config.json, got {str(folder)!r}; "
            "give the folder that `amago train` printed, such as runs/NAME"
        )
    header = _read_object(folder / "config.json")
    missing = sorted({"preset", "seed", "config"} - set(header))
    if missing:
        raise ValueError(
            f"expected preset, seed and config in {folder / 'config.json'}, "
            f"missing: {', '.join(missing)}; the file was not written by `amago train`"
        )
    result = folder / "result.json"
    return RunRecord(
        name=folder.resolve().name,
        path=folder,
        preset=str(header["preset"]),
        seed=int(header["seed"]),
        config=header["config"],
        git_commit=header.get("git_commit"),
        metrics=_read_jsonl(folder / "metrics.jsonl") or _read_evaluations(folder / EVALUATIONS),
        timing=_read_jsonl(folder / "timing.jsonl"),
        result=_read_object(result) if result.is_file() else None,
        method=str((header.get("baseline") or {}).get("method", "amago")),
        method_settings=(header.get("baseline") or {}).get("settings"),
        own_env=str((header.get("custom") or {}).get("env", "")),
    )


def _read_jsonl(path: Path) -> list[Row]:
    """The rows of a file that may still be growing, one per epoch; none if there is no file."""
    if not path.is_file():
        return []
    lines = path.read_bytes().split(b"\n")
    rows: list[Row] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            # A writer that is still at work, or was killed, leaves half a line at the very end.
            if number == len(lines):
                break
            raise ValueError(
                f"expected one JSON object per line in {path}, line {number} is none ({error}); "
                "delete that line to read the rest"
            ) from error
    # A run that resumed from an older checkpoint may have repeated epochs: the later row counts.
    by_epoch = {row.get("epoch", -1 - index): row for index, row in enumerate(rows)}
    return list(by_epoch.values())


def _read_evaluations(path: Path) -> list[Row]:
    """The evaluations of a run that was exported: its seeds go on counting among later ones."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [{key: _from_cell(key, cell) for key, cell in row.items() if cell} for row in rows]


def _from_cell(key: str, cell: str) -> Any:
    if key in ("epoch", "env_steps", "updates", "eval/episodes"):
        return int(float(cell))
    numbers = [float(number) for number in cell.split()]
    return numbers if key.endswith(("_per_block", "_per_trial")) else numbers[0]


def find_runs(root: str | Path) -> dict[str, list[RunRecord]]:
    """The runs of a sweep by group, the name of the folder around the seeds."""
    folders = [config.parent for config in sorted(Path(root).glob("*/seed-*/config.json"))]
    if not folders:
        raise ValueError(
            f"expected run folders {Path(root)}/GROUP/seed-N, found none; "
            "give the root folder of an `amago sweep`"
        )
    groups: dict[str, list[RunRecord]] = {}
    for folder in folders:
        groups.setdefault(folder.parent.name, []).append(read_run(folder))
    return {group: sorted(runs, key=lambda run: run.seed) for group, runs in groups.items()}


def label(group: str) -> str:
    """A group's folder name as people read it: t-maze__memory=gru becomes t-maze, memory=gru."""
    return group.replace("__", ", ")


def _read_object(path: Path) -> Row:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(
            f"expected JSON in {path}, got something else ({error}); "
            "restore the file, or remove the run and start it again"
        ) from error
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object in {path}, got {type(value).__name__}")
    return value
