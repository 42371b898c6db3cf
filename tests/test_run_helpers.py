"""Runs small enough for tests, processes that die on demand, and environments that misbehave."""

from __future__ import annotations

import json
import os
import re
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

import amago
from amago import api
from amago.cli import main
from amago.config import Config, override
from amago.envs.catalogue import TASKS, _task_arguments
from amago.saved import checkpoint, kept
from amago.training.view import Silent

torch.set_num_threads(1)

SMALL_WORLD = {"corridor": 6, "grid": 3, "trial_limit": 6, "horizon": 12, "delay": 1, "rounds": 1}
FEW = {
    "env.num_lanes": 3,
    "env.eval_lanes": 4,
    "replay.batch_size": 4,
    "run.epochs": 2,
    "run.updates_per_epoch": 2,
    "run.eval_episodes": 4,
    "run.final_eval_episodes": 4,
    "run.threads": 1,
    "run.report": False,
}


def few(config: Config) -> dict[str, Any]:
    """Overrides for few lanes, updates and rows per update, counted as the preset counts them."""
    if config.replay.batch_rows is None:
        return FEW
    return {**FEW, "replay.batch_rows": 24, "rollout.steps_per_epoch": None}


def short_world(config: Config) -> dict[str, Any]:
    """Overrides that keep a preset's rollouts short, whatever its environment is."""
    if config.env.trials is not None or "Crafter" in config.env.id:
        return {"env.kwargs": {**config.env.kwargs, "horizon": 6}, "replay.context_length": 8}
    if config.env.id not in TASKS:
        return {"rollout.steps_per_epoch": 12, "replay.context_length": 8}
    if "corridor" in "".join(config.env.ids):
        count = len(config.env.ids)
        ids = tuple(f"{config.env.id}?corridor={3 + number}" for number in range(count))
        return {"env.ids": ids, "env.num_lanes": count, "env.eval_lanes": count}
    known = _task_arguments(config.env.id)
    return {"env.kwargs": {key: size for key, size in SMALL_WORLD.items() if key in known}}


def tiny(preset: str, overrides: dict[str, Any] | None = None, *, nets: bool = True) -> Config:
    """A preset in which an epoch takes milliseconds."""
    config = amago.preset(preset, "tiny" if nets else None)
    return override(config, {**few(config), **short_world(config), **(overrides or {})})


def flags(config: Config, like: Config) -> list[str]:
    """The command line that turns one config into another."""
    found = []
    ours, theirs = _leaves(api_dict(config)), _leaves(api_dict(like))
    for path, value in ours.items():
        if theirs.get(path) != value:
            values = value if isinstance(value, tuple) else (value,)
            found += ["--" + path.replace("_", "-"), *map(str, values)]
    return found


def api_dict(config: Config) -> dict[str, Any]:
    from amago.config import to_dict

    return to_dict(config)


def _leaves(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        path = prefix + name
        flat |= _leaves(value, path + ".") if isinstance(value, dict) else {path: value}
    return flat


def command(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, output and errors of one command line, without line breaks and boxes."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    code = 0 if end.value.code is None else end.value.code
    assert isinstance(code, int), code
    return code, out, re.sub(r"[\s│╭╮╰╯─]+", " ", err)


def evidence(folder: Path) -> dict[str, Any]:
    """All of a run that must not depend on how often it was interrupted."""
    latest = kept.find(folder / "checkpoints")
    assert latest is not None
    state = json.loads((latest / "state.json").read_text())
    state["offsets"] = state["offsets"][0]  # the second one is timing's
    del state["seconds"]
    found: dict[str, Any] = {"state": state, "latest": latest.name}
    found["metrics"] = (folder / "metrics.jsonl").read_bytes()
    table = folder / "metrics.csv"
    found["table"] = table.read_bytes() if table.exists() else b""
    found["best"] = (folder / "checkpoints" / "best.json").read_text()
    for name in ("model.safetensors", "optimizer.safetensors"):
        found[name] = (latest / name).read_bytes()
    if (folder / "result.json").exists():
        found["result"] = json.loads((folder / "result.json").read_text())
        del found["result"]["seconds"]
    return found


def differing(a: Path, b: Path) -> list[str]:
    """Names of what two runs do not have in common, bit for bit."""
    ours, theirs = evidence(a), evidence(b)
    return [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]


def sign(path: Path) -> None:
    """Give the files of a checkpoint, whatever is in them, checksums that fit."""
    names = (checkpoint.MODEL, checkpoint._OPTIMIZER, checkpoint._STATE)
    sums = {name: checkpoint._digest((path / name).read_bytes()) for name in names}
    (path / checkpoint._CHECKSUMS).write_text(json.dumps(sums))


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


class KillDuring(Silent):
    """kill -9 of its own process, in the middle of a phase of one epoch."""

    def __init__(self, epoch: int, phase: str) -> None:
        self.left, self.name = epoch - 1, phase

    def phase(self, name: str, fraction: float = 0.0) -> None:
        if self.left == 0 and name == self.name and fraction in (0.0, 0.5):
            die()

    def epoch(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        self.left -= 1


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_another_process(work: Callable[..., Any], *arguments: Any) -> int:
    """The exit code of work(*arguments) in a fork of this one; minus the signal that killed it.

    A fork, since a fresh interpreter spends ten times longer on imports than on the run.
    """
    child = os.fork()
    if child == 0:
        try:
            work(*arguments)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def no_plots() -> None:
    """Drawing takes longer than all else that these runs do."""
    api.plot_run = lambda *_, **__: None  # type: ignore[assignment]


class BadEnv(gym.Env[Any, Any]):
    """Two steps long, with a fault of choice."""

    def __init__(self, fault: str) -> None:
        self.fault, self.time = fault, 0
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space: gym.Space[Any] = gym.spaces.Discrete(2)
        if fault == "actions":
            self.action_space = gym.spaces.Dict({"a": gym.spaces.Discrete(2)})

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return self._observe(), 1.0, self.time == 2, False, {}

    def _observe(self) -> Any:
        return np.full(2, np.nan if self.fault == "nan" and self.time else 0.5, np.float32)


for fault in ("actions", "nan", "endless"):
    if f"Bad-{fault}-v0" not in gym.registry:
        gym.register(f"Bad-{fault}-v0", BadEnv, kwargs={"fault": fault})


def test_a_command_line_made_of_two_configs_turns_one_into_the_other() -> None:
    config = tiny("dark-key-to-door")
    line = flags(config, amago.preset("dark-key-to-door"))
    assert line[line.index("--env.kwargs.grid") + 1] == "3"
    assert line[line.index("--encoder.hidden") + 1] == "16"
    assert flags(config, config) == []


def test_a_process_that_kills_itself_is_seen_to_have_been_killed() -> None:
    assert in_another_process(die) == -signal.SIGKILL
