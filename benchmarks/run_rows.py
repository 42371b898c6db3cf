"""Run folders as rows of a table, for docs/notebook/recipe-runs.csv.

    python benchmarks/run_rows.py RUN [RUN …] >> docs/notebook/recipe-runs.csv

A row has the commit, the settings in which the run differs from its preset, and every evaluation.
Minutes are those of the processor, all threads together.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

from amago.config import Config, differences, from_dict
from amago.envs.catalogue import preset

_MACHINE = ("run.threads", "run.report", "run.device")


def row(run: Path) -> list[Any]:
    header = json.loads((run / "config.json").read_text())
    config = from_dict(header["config"])
    metrics = _lines(run / "metrics.jsonl")
    last = metrics[-1]
    result = run / "result.json"
    final = json.loads(result.read_text()) if result.exists() else {}
    timing = _lines(run / "timing.jsonl")
    seconds = sum(v for line in timing for k, v in line.items() if k.endswith("cpu_seconds"))
    return [
        header["created"], run.name, header["git_commit"], header["preset"], config.env.id,
        header["seed"], _changes(preset(header["preset"]), config), last["epoch"],
        config.run.epochs, last["updates"], last["env_steps"],
        _evaluations(metrics, "eval/return_mean"), _evaluations(metrics, "eval/success_rate"),
        final.get("return_mean", ""), final.get("random_return_mean", ""), f"{seconds / 60:.1f}",
    ]  # fmt: skip


def _changes(before: Config, after: Config) -> str:
    changed = differences(before, after).items()
    return " ".join(f"{name}={new}" for name, (_, new) in changed if name not in _MACHINE)


def _evaluations(metrics: list[dict[str, Any]], name: str) -> str:
    return " ".join(f"{line['epoch']}:{line[name]:.3g}" for line in metrics if line.get(name))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for name in sys.argv[1:]:
        writer.writerow(row(Path(name)))
