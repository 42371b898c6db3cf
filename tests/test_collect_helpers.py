"""Tiny runs on several processes, and what can be compared between two of them."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from amago import api
from amago.config import Config, override
from amago.envs.catalogue import preset
from amago.replay.reader import TrajectoryReader
from amago.saved import kept

SHRINK: dict[str, Any] = {
    "run.epochs": 3,
    "run.updates_per_epoch": 2,
    "run.eval_interval": 2,
    "run.eval_episodes": 3,
    "run.final_eval_episodes": 3,
    "run.save_interval": 1,
    "run.threads": 1,
    "run.device": "cpu",
    "run.report": False,
    "env.num_lanes": 4,
    "env.eval_lanes": 3,
    "replay.batch_size": 4,
    "replay.capacity": 1000,
}


def tiny(name: str = "t-maze", /, **changes: Any) -> Config:
    """A preset of a few seconds; `scale_collectors=2` sets scale.collectors."""
    small = {}
    if name == "t-maze":
        small = {"env.kwargs.corridor": 6, "replay.batch_rows": 24, "rollout.steps_per_epoch": 7}
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    return override(preset(name), {**SHRINK, **small, **dotted})


def endless(folder: Path, *more: str) -> list[str]:
    """The command of a run that goes on until it is killed, with a checkpoint at every epoch."""
    settings = {
        "env.kwargs.corridor": 6, "env.num-lanes": 4, "run.epochs": 500, "run.threads": 1,
        "rollout.steps-per-epoch": 7,
        "run.updates-per-epoch": 1, "run.save-interval": 1, "run.eval-interval": 500,
        "run.final-eval-episodes": 2, "replay.batch-rows": 12, "scale.collectors": 2,
        "scale.mode": "async",
    }  # fmt: skip
    flags = [part for key, value in settings.items() for part in (f"--{key}", str(value))]
    return [sys.executable, "-m", "amago", "train", "t-maze", "--run-dir", str(folder), *flags,
            *more]  # fmt: skip


def trained(folder: Path, config: Config, seed: int = 3) -> Path:
    api.train(config, seed, folder)
    return folder


def contents(folder: Path) -> dict[str, Any]:
    """What must be equal in two runs that did the same: trajectories, weights and metrics."""
    path = kept.find(folder / "checkpoints", "latest")
    assert path is not None
    weights = {
        name: hashlib.sha256(value.numpy().tobytes()).hexdigest()
        for file in ("model.safetensors", "optimizer.safetensors")
        for name, value in load_file(path / file).items()
    }
    state = json.loads((path / "state.json").read_text())
    return {
        "trajectories": trajectories(folder),
        "weights": weights,
        "metrics": rows(folder / "metrics.jsonl"),
        "counters": {k: v for k, v in state.items() if k not in ("seconds", "offsets")},
    }


def trajectories(folder: Path) -> list[str]:
    """The stored trajectories, oldest first, as hashes of all that they hold."""
    with TrajectoryReader(folder / "replay") as reader:
        found = [reader.read(int(trajectory_id)) for trajectory_id in reader.ids]
    return [_digest(vars(trajectory)) for trajectory in found]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _digest(values: Any) -> str:
    digest = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, dict):
            for key in sorted(value):
                digest.update(key.encode())
                add(value[key])
        elif isinstance(value, tuple):
            for item in value:
                add(item)
        else:
            digest.update(value.tobytes() if hasattr(value, "tobytes") else str(value).encode())

    add(values)
    return digest.hexdigest()


class AtEpoch(api.Silent):
    """Does something when an epoch is complete."""

    def __init__(self, actions: dict[int, Callable[[], None]]) -> None:
        self.actions = actions

    def epoch(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        if metrics["epoch"] in self.actions:
            self.actions[metrics["epoch"]]()
