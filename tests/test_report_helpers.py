"""Run folders as training writes them, made of invented numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_run(
    folder: Path,
    *,
    preset: str = "dark-key-to-door",
    seed: int = 0,
    epochs: int = 20,
    level: float = 2.0,
    complete: bool = True,
    success: bool = True,
) -> Path:
    """A run evaluated at every second epoch, whose return rises linearly to `level`."""
    folder.mkdir(parents=True)
    header = {"version": "0", "preset": preset, "seed": seed, "git_commit": "c0ffee"}
    config = {"env": {"id": preset}, "run": {"epochs": epochs}}
    (folder / "config.json").write_text(json.dumps({**header, "config": config, "created": ""}))
    blocks = [level * tenth / 55 for tenth in range(1, 11)]
    metrics: list[dict[str, Any]] = []
    for epoch in range(1, epochs + 1):
        reached = level * epoch / epochs
        row: dict[str, Any] = {"epoch": epoch, "env_steps": 100 * epoch, "updates": 5 * epoch}
        row |= {"loss/critic": 1 / epoch, "loss/actor": -0.1, "rollout/return_mean": reached}
        row |= {"policy/entropy": 1.0, "value/q@0.9": 1.0, "value/q@0.999": 2.0}
        if epoch % 2 == 0:
            row |= {"eval/return_mean": reached, "eval/return_std": 0.5, "eval/episodes": 16}
            row |= {"eval/return_per_block": [value * epoch / epochs for value in blocks]}
            row |= {"eval/success_rate": epoch / epochs} if success else {}
        metrics.append(row)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in metrics))
    timing = [{"epoch": epoch, "seconds": 3.0} for epoch in range(1, epochs + 1)]
    (folder / "timing.jsonl").write_text("".join(json.dumps(row) + "\n" for row in timing))
    if complete:
        result = {"preset": preset, "seed": seed, "epochs": epochs, "seconds": 120.0}
        result |= {"return_mean": level, "return_std": 0.5, "return_per_block": blocks}
        result |= {"success_rate": 1.0 if success else None, "episodes": 200}
        result |= {"references": {"oracle": [level / 5] * 10, "random": [level / 50] * 10}}
        scores = {"return_mean": level, "success_rate": 1.0 if success else None}
        result |= {"reference_scores": {"oracle": scores}}
        (folder / "result.json").write_text(json.dumps(result))
    return folder
