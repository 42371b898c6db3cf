"""Evaluations after training, kept beside a run in data/<arm>/seed-N/probes/."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

from amago.report.runs import RunRecord

_PROBES = "probes"
AS_DRAWN = "(as drawn)"
_KEYS = {"agent": ("score", "success"), "random": ("random_score", "random")}


def probe_path(run: Path, name: str) -> Path:
    """Where a claim keeps the scores of a probe."""
    return run / _PROBES / f"{name}.json"


def probe_rows(run: RunRecord, name: str) -> list[dict[str, Any]]:
    """The scores of a probe, one row per checkpoint and instruction; none if it was not made."""
    path = probe_path(run.path, name)
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"] if path.is_file() else []
    return rows


def probe_score(
    run: RunRecord, name: str, player: Literal["agent", "random"] = "agent"
) -> float | None:
    """What a probe counted at its last checkpoint, as instructions are drawn, or of the one row."""
    rows = probe_rows(run, name)
    drawn = [row for row in rows if row.get("instruction", AS_DRAWN) == AS_DRAWN]
    if not rows:
        return None
    row = (drawn or rows)[-1]
    measured, success = _KEYS[player]
    value = row.get(measured, row.get(success))
    return None if value is None else float(value)


def split_goals(instruction: str) -> list[str]:
    """The goals of an instruction in words; commas inside of brackets separate nothing."""
    return re.split(r", (?![^(]*\))", instruction)
