"""The runs that are attacked: every memory, action kind, relabeling, pixels, workers, imports."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from test_run_helpers import no_plots, tiny

from amago import api
from amago.config import Config
from amago.datasets.importing import import_into
from amago.replay.reader import TrajectoryReader
from amago.training.start import create
from amago.training.view import View

_LONG: dict[str, Any] = {
    "run.epochs": 8, "run.eval_interval": 3, "run.save_interval": 2, "replay.capacity": 9,
    "transformer.dropout": 0.1,
}  # fmt: skip
_WIND: dict[str, Any] = {"env.kwargs": {"horizon": 6}}
IMPORTED = "imported data"
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "Transformer, discrete": ("dark-key-to-door", {
        "env.kwargs": {"grid": 3, "trial_limit": 3, "horizon": 6}}),
    "GRU, continuous": ("wind", {**_WIND, "memory": "gru"}),
    "no memory, continuous": ("wind", {**_WIND, "memory": "feedforward"}),
    "multi-discrete, masked": ("masked-recall", {}),
    "multi-binary": ("bit-recall", {}),
    "several tasks": ("multi-task", {}),
    "relabeling": ("maze-runner", {"env.kwargs": {"size": 7, "horizon": 12}}),
    "relabeling, GRU, workers": ("maze-runner", {
        "env.kwargs": {"size": 7, "horizon": 12}, "memory": "gru", "env.num_workers": 2}),
    "pixels": ("pixel-recall", {}),
    "Gymnasium, workers": ("gym", {"env.num_workers": 2}),
    IMPORTED: ("wind", {**_WIND, "rollout.offline_epochs": 3}),
}  # fmt: skip
SEED = 7


def config_of(kind: str) -> Config:
    preset, settings = KINDS[kind]
    return tiny(preset, {**_LONG, **settings})


def begin(kind: str, run: Path, view: View | None = None) -> None:
    """A run from its first epoch to its last."""
    no_plots()
    if kind != IMPORTED:
        api.train(config_of(kind), SEED, run, preset=KINDS[kind][0], view=view)
        return
    create(run, config_of(kind), SEED, preset="wind").close()
    _import_and_train(run, view)


def _import_and_train(run: Path, view: View | None) -> None:
    source = run.parent / "source"
    if not (source / "result.json").exists():
        shutil.rmtree(source, ignore_errors=True)
        api.train(tiny("wind", {"run.epochs": 3, **_WIND}), 1, source, preset="wind")
    import_into(run, "run", [str(source)])
    api.resume(run, view=view)


def go_on(kind: str, run: Path, view: View | None = None) -> None:
    """What a person does after a crash: resume what is there, begin what is not."""
    no_plots()
    if resumes(kind, run):
        api.resume(run, view=view)
    elif (run / "config.json").exists():
        _import_and_train(run, view)  # an import is all or none: make it again
    else:
        shutil.rmtree(run, ignore_errors=True)
        begin(kind, run, view)


def resumes(kind: str, run: Path) -> bool:
    return (run / "config.json").exists() and (kind != IMPORTED or _has_data(run))


def _has_data(run: Path) -> bool:
    """Whether an import came to its end before the run was killed."""
    try:
        with TrajectoryReader(run / "replay") as store:
            return bool(store.num_protected)
    except ValueError:  # killed before the store was made
        return False
