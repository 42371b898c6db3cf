"""A control for a run: the same training without memory, beside it in every table and curve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from amago.config import Config, override

_NAME = "no memory"
_FOLDER = "control"
"""Where the control's own run is, inside the folder of the run."""


def train_control(config: Config, seed: int, folder: Path, preset: str) -> None:
    """Train a feed-forward agent with the same settings and seed, so that it is tested in the
    same worlds; a control that was begun goes on."""
    from amago import api
    from amago.training.view import make_view

    config = override(config, {"memory": "feedforward"})
    print(f"control: the same training without memory, in {folder / _FOLDER}", flush=True)
    run_dir, view = folder / _FOLDER, make_view(config.run.epochs)
    api.train(config, seed, run_dir, preset=preset, view=view, exist="resume", check=False)
    _add_control(folder)
    if config.run.report:
        api.report(folder, trust=True)


def _add_control(folder: Path) -> None:
    """Write the control's scores into the run's result, and draw its curves again."""
    from amago.report.curves import plot_run
    from amago.report.runs import read_run
    from amago.training.files import read_json, write_json

    result: dict[str, Any] = read_json(folder / "result.json")
    control = read_json(folder / _FOLDER / "result.json")
    keys = result["reference_scores"]["random"]
    result["reference_scores"][_NAME] = {key: control.get(key) for key in keys}
    if control.get("return_per_block"):
        result["references"][_NAME] = control["return_per_block"]
    for task, earned in result.get("tasks", {}).items():
        earned[f"{_NAME}_return_mean"] = control["tasks"][task]["return_mean"]
    write_json(folder / "result.json", result)
    plot_run(read_run(folder), folder / "curves.png", result["references"])
