"""Checkpoints: safetensors and JSON, complete or not there at all.

`checkpoints/<epoch>/` holds the weights, the optimiser's moments, the run's counters and the
checksums of these files. It is written beside its final name, made durable, then renamed; only
then `latest.json` (or `best.json`) points to it. Loading one runs no code. Which checkpoint a
run goes on from is chosen in `kept.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor

from amago.agent.agent import Agent
from amago.agent.update import Learner
from amago.disk import sync_path
from amago.saved.counters import wrong_counter
from amago.saved.files import read_json, write_json
from amago.saved.kept import point

_FORMAT_VERSION = 1
MODEL, _OPTIMIZER, _STATE = "model.safetensors", "optimizer.safetensors", "state.json"
_CHECKSUMS = "checksums.json"
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""What Adam remembers of each parameter."""


@dataclass(frozen=True)
class Snapshot:
    """A run at the end of an epoch, in memory of its own."""

    epoch: int
    state: dict[str, Any]
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]


def take(epoch: int, learner: Learner, state: dict[str, Any]) -> Snapshot:
    """What a checkpoint made now would hold; later updates do not change it."""
    model = learner.agent.state_dict()
    return Snapshot(epoch, state, _copied(model), _copied(_optimizer_tensors(learner)))


def save(folder: Path, snapshot: Snapshot, *, best: bool = False) -> Path:
    """Write a checkpoint and make it the latest, and the best if it is."""
    folder.mkdir(exist_ok=True)
    name = f"{snapshot.epoch:06d}"
    final, temporary = folder / name, folder / f"{name}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    state = {"version": _FORMAT_VERSION, "epoch": snapshot.epoch, **snapshot.state}
    contents = {
        MODEL: to_bytes(snapshot.model),
        _OPTIMIZER: to_bytes(snapshot.optimizer),
        _STATE: (json.dumps(state, indent=1) + "\n").encode(),
    }
    for file, content in contents.items():
        (temporary / file).write_bytes(content)
        sync_path(temporary / file)
    write_json(temporary / _CHECKSUMS, {file: _digest(data) for file, data in contents.items()})
    shutil.rmtree(final, ignore_errors=True)
    os.rename(temporary, final)
    sync_path(folder)
    # The latest last: a crash before it makes this epoch anew, best pointer included.
    for pointer in ("best", "latest") if best else ("latest",):
        point(folder, pointer, snapshot.epoch)
    return final


def problem(path: Path) -> str | None:
    """What is wrong with a checkpoint's files; None if they are as they were written."""
    try:
        sums = _checksums(path)
        for name in (MODEL, _OPTIMIZER, _STATE):
            content = (path / name).read_bytes()
            if sums.get(name) != _digest(content):
                return f"{name} is damaged (its checksum differs)"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except IsADirectoryError as error:
        return f"{Path(error.filename).name} is a folder"
    except ValueError:
        return f"{_CHECKSUMS} is damaged"
    return None


def check_shapes(path: Path, agent: Agent) -> None:
    """ValueError unless a checkpoint has the tensors of an agent, which may be on device "meta".

    A config.json may claim networks of any size; this is found out before they are made.
    """
    wanted = {name: tuple(value.shape) for name, value in agent.state_dict().items()}
    try:
        with safe_open(path / MODEL, "pt") as file:
            names = file.keys()
            found = {name: tuple(file.get_slice(name).get_shape()) for name in names}
    except (SafetensorError, OSError) as error:
        raise _damaged(path / MODEL, str(error)) from error
    wrong = sorted(n for n in wanted.keys() | found if wanted.get(n) != found.get(n))
    if wrong:
        raise _misfit(
            path,
            f"{len(wrong)} tensors differ, such as {wrong[0]}: expected {wanted.get(wrong[0])}, "
            f"got {found.get(wrong[0])}",
        )


def load_agent(path: Path, agent: Agent) -> None:
    """Fill an agent's weights; shapes that differ are an error that names them."""
    _check_sum(path, MODEL)
    tensors = _load(path / MODEL, agent.discounts.device)
    try:
        agent.load_state_dict(tensors)
    except RuntimeError as error:
        raise _misfit(path, str(error)) from error


def read_state(path: Path) -> dict[str, Any]:
    """The run's counters in a checkpoint."""
    state: dict[str, Any] = read_json(path / _STATE)
    version = state.get("version") if isinstance(state, dict) else None
    if version != _FORMAT_VERSION:
        raise ValueError(
            f"{path} has checkpoint format {version}, this amago reads {_FORMAT_VERSION}; resume "
            "it with the amago that wrote it"
        )
    wrong = wrong_counter(state, path.name)
    if wrong is not None:
        raise _damaged(path / _STATE, wrong)
    return state


def load_learner(path: Path, learner: Learner) -> None:
    """Fill weights and optimiser."""
    load_agent(path, learner.agent)
    moments = _load(path / _OPTIMIZER, learner.agent.discounts.device)
    _check_moments(path / _OPTIMIZER, learner, moments)
    _fill_optimizer(learner, moments)


def check_numbers(path: Path) -> None:
    """ValueError if weights or moments of a checkpoint are not numbers (NaN)."""
    for name in (MODEL, _OPTIMIZER):
        _load(path / name, torch.device("cpu"))


def fill_learner(learner: Learner, snapshot: Snapshot) -> None:
    """Make a learner what another one was when the snapshot was taken."""
    device = learner.agent.discounts.device
    learner.agent.load_state_dict(snapshot.model)
    _fill_optimizer(learner, {name: value.to(device) for name, value in snapshot.optimizer.items()})


def _fill_optimizer(learner: Learner, tensors: dict[str, Tensor]) -> None:
    for index, parameter in enumerate(learner.parameters):
        if f"{index}.step" in tensors:
            learner.optimizer.state[parameter] = {n: tensors[f"{index}.{n}"] for n in _MOMENTS}


def _check_moments(path: Path, learner: Learner, tensors: dict[str, Tensor]) -> None:
    """ValueError unless each parameter has all of its moments, or none before its first update."""
    known = set[str]()
    for index, parameter in enumerate(learner.parameters):
        names = {name: f"{index}.{name}" for name in _MOMENTS}
        known.update(names.values())
        for name in names.values() if tensors.keys() & names.values() else ():
            shape = parameter.shape if name != names["step"] else torch.Size()
            found = tensors.get(name)
            if found is None or found.shape != shape or not found.is_floating_point():
                raise _damaged(path, f"{name} does not fit a parameter of shape {list(shape)}")
    if extra := sorted(tensors.keys() - known):
        raise _damaged(path, f"{extra[0]} belongs to no parameter")


def _check_sum(path: Path, name: str) -> None:
    """ValueError if a file is not what was written."""
    if not (path / name).is_file():
        return  # reading it says so
    try:
        sums = _checksums(path)
    except FileNotFoundError as error:
        raise _damaged(path / _CHECKSUMS, "it is missing") from error
    if sums.get(name) != _digest((path / name).read_bytes()):
        raise _damaged(path / name, "its checksum differs")


def _checksums(path: Path) -> dict[str, str]:
    """The checksums of a checkpoint."""
    file = path / _CHECKSUMS
    sums = read_json(file)
    if not isinstance(sums, dict):
        raise ValueError(f"{file} is damaged; restore it from a copy")
    return sums


def _load(path: Path, device: torch.device) -> dict[str, Tensor]:
    try:
        tensors = load_file(path, device=str(device))
    except (SafetensorError, OSError) as error:
        raise _damaged(path, str(error)) from error
    for name, value in tensors.items():
        if value.isnan().any():
            raise _damaged(path, f"{name} has values that are not numbers")
    return tensors


def _damaged(path: Path, reason: str) -> ValueError:
    """The error of a file that cannot be used."""
    return ValueError(
        f"{path} is damaged ({reason}); restore it from a copy, or use another checkpoint "
        "of the run"
    )


def _misfit(path: Path, reason: str) -> ValueError:
    return ValueError(
        f"{path} does not fit this agent: sizes of networks must be those it was trained "
        f"with; was its config.json changed, or are custom parts missing?\n{reason}"
    )


def _digest(content: bytes) -> str:
    """The checksum of a file's content."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _optimizer_tensors(learner: Learner) -> dict[str, Tensor]:
    return {
        f"{index}.{name}": torch.as_tensor(value)
        for index, parameter in enumerate(learner.parameters)
        for name, value in learner.optimizer.state.get(parameter, {}).items()
    }


def _copied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: value.detach().to("cpu", copy=True).contiguous() for name, value in tensors.items()
    }
