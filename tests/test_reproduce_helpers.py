"""Claims of the registry with invented runs behind them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from test_report_helpers import write_run

from amago.reproduce.claims.probes import AS_DRAWN, probe_path, split_goals
from amago.reproduce.entry import Experiment, Probe, Variant

KINDS = ("residual", "query", "key", "value")


def write_arms(
    experiment: Experiment, out: Path, arms: Sequence[Variant] | None = None, seeds: int = 2
) -> Path:
    """Runs of some arms in the claim's folder, the first arm the best, with all that views read."""
    folder = out / experiment.claim
    for place, arm in enumerate(experiment.arms if arms is None else arms):
        for seed in range(seeds):
            run = folder / "data" / arm.folder / f"seed-{seed}"
            level = 0.9 / (1 + place) + 0.01 * seed
            write_run(run, preset=experiment.preset, seed=seed, epochs=6, level=level)
            _log_more(run, level)
            for probe in experiment.probes:
                path = probe_path(run, probe.name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(json.dumps({"rows": _rows(probe, level)}))
    return folder


def _log_more(run: Path, level: float) -> None:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        row |= {f"activation/{kind}": level * row["epoch"] for kind in KINDS}
        row |= {"grad/norm": 1 / level}
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = json.loads((run / "result.json").read_text())
    result |= {"return_per_trial": [level, 2 * level, 3 * level], "success_rate": level}
    result["success_by_length"] = _by_length(level)
    (run / "result.json").write_text(json.dumps(result))


def _by_length(level: float) -> dict[str, Any]:
    return {str(n): {"success_rate": level**n, "episodes": 40} for n in (1, 2, 3)}


def _rows(probe: Probe, level: float) -> list[dict[str, Any]]:
    asked = (*probe.instructions, AS_DRAWN) if probe.instructions else (AS_DRAWN,)
    epochs = (2, 4, 6) if probe.which == "kept" else (6,)
    return [
        {
            "epoch": epoch, "instruction": text, "success": level * epoch / 6,
            "success_return": level * epoch / 6 * len(split_goals(text)), "random": 0.05,
            "random_return": 0.1, "by_length": _by_length(level),
        }
        for epoch in epochs
        for text in asked
    ]  # fmt: skip
