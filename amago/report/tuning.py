"""What a search has found: its trials, the best one, and the command that trains it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from amago.report.tables import number

if TYPE_CHECKING:
    import optuna

_MOST_ROWS = 20


def tuning_report(
    root: Path, preset: str, study: optuna.Study, changes: Sequence[str], console: Console
) -> list[dict[str, Any]]:
    """Write trials.json, print the best trials and how to train the first."""
    rows = _trial_rows(study)
    (root / "trials.json").write_text(json.dumps(rows, indent=2) + "\n")
    console.print(_tuning_table(rows))
    if rows and rows[0]["value"] is not None:
        best = dict(c.split("=", 1) for c in changes)
        best |= {key: str(value) for key, value in rows[0]["settings"].items()}
        words = [word for key, value in best.items()
                 for word in ("--" + key.replace("_", "-"), *value.split())]  # fmt: skip
        command = shlex.join(["amago", "train", preset, *words])
        console.print(f"best: {command}", highlight=False, soft_wrap=True)
    return rows


def _trial_rows(study: optuna.Study) -> list[dict[str, Any]]:
    """All trials, the best first; those that were pruned or failed have no value."""
    rows = [
        {
            "trial": trial.number,
            "state": trial.state.name.lower(),
            "value": trial.value if trial.state.name == "COMPLETE" else None,
            "random": trial.user_attrs.get("random"),
            "last": max(trial.intermediate_values.items(), default=(0, None))[1],
            "epoch": max(trial.intermediate_values, default=0),
            "settings": trial.params,
        }
        for trial in study.get_trials(deepcopy=False)
    ]
    return sorted(rows, key=lambda row: (row["value"] is None, -(row["value"] or 0.0)))


def _tuning_table(rows: Sequence[dict[str, Any]]) -> Table:
    """One line per trial; settings fold onto further lines."""
    table = Table(
        title=f"Trials, the best first ({len(rows)} in all)",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        caption="return: pooled over the last evaluations and the final test; a pruned run shows "
        "its last evaluation in brackets; random: random play in the worlds of the final test",
        caption_justify="left",
    )
    table.add_column("trial", justify="right")
    table.add_column("return", justify="right", no_wrap=True)
    table.add_column("random", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("settings", overflow="fold")
    for row in rows[:_MOST_ROWS]:
        value = number(row["value"]) if row["value"] is not None else f"({number(row['last'])})"
        settings = "\n".join(f"{key}={_short(value)}" for key, value in row["settings"].items())
        table.add_row(str(row["trial"]), value, number(row["random"]), row["state"], settings)
    return table


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
