"""A control for a run: the same training without memory, beside it in every table and curve."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from amago.config import MACHINE_SETTINGS, Config, differences, override
from amago.saved.files import count_rows, read_json, write_json
from amago.saved.header import CONTROL, NO_MEMORY, read_config, read_header
from amago.training.run import TrainingRun
from amago.training.view import Silent, View

_CHANGES = {
    "memory": "feedforward",
    "run.control": False,
    "run.max_minutes": None,
    "run.start_from": "",
    "scale.learners": 1,
}


def train_control(run: TrainingRun, train: Callable[..., object], view: View) -> dict[str, Any]:
    """Train a feed-forward agent for as many epochs as a complete run, and add its scores to the
    run's result, which is returned.

    Settings, seed and worlds of the final test are those of the run. `train` is `amago.train`; a
    control that was begun goes on if it is that of this training, else it begins again.
    """
    folder = run.folder / CONTROL
    config = override(run.config, _CHANGES)
    exist = _what_to_do(folder, config, run.epoch)
    if exist is not None:
        if not isinstance(view, Silent):
            print(f"control: the same training without memory, in {folder}", flush=True)
        train(
            config,
            run.seed,
            folder,
            env=run.custom.make_env,
            encoder=run.custom.parts.encoder,
            terms=run.custom.parts.terms,
            preset=read_header(run.folder).get("preset", ""),
            stop_when=lambda epoch: epoch.number >= run.epoch,
            view=view,
            exist=exist,
            check=False,
        )
    return _beside(run.folder, read_json(folder / "result.json"))


def _what_to_do(folder: Path, wanted: Config, epochs: int) -> Literal["resume", "overwrite"] | None:
    """How `train` gets a control of these settings and epochs; None if the folder has it."""
    if not (folder / "config.json").is_file():
        return "resume"
    differing = differences(read_config(folder), wanted).keys() - {"run.epochs", *MACHINE_SETTINGS}
    if differing or count_rows(folder / "metrics.jsonl") > epochs:
        return "overwrite"
    return None if _epochs_tested(folder) == epochs else "resume"


def _epochs_tested(folder: Path) -> int | None:
    """Epochs of the control that its result is about."""
    path = folder / "result.json"
    return read_json(path).get("epochs") if path.is_file() else None


def _beside(folder: Path, control: dict[str, Any]) -> dict[str, Any]:
    """The result of a run with the scores of its control, also on disk."""
    result: dict[str, Any] = read_json(folder / "result.json")
    keys = result["reference_scores"]["random"]
    result["reference_scores"][NO_MEMORY] = {key: control.get(key) for key in keys}
    if control.get("return_per_block"):
        result["references"][NO_MEMORY] = control["return_per_block"]
    for task, earned in result.get("tasks", {}).items():
        earned[f"{NO_MEMORY}_return_mean"] = control["tasks"][task]["return_mean"]
    write_json(folder / "result.json", result)
    return result
