"""Checkpoints: safetensors and JSON, complete or not there at all.

`checkpoints/<epoch>/` holds the weights, the optimiser's moments and the run's counters. It
is written beside its final name, made durable, then renamed; only then `latest.json` (or
`best.json`) points to it. Loading one runs no code.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from amago.agent.agent import Agent
from amago.agent.learner import Learner
from amago.training.files import read_json, sync_path, write_json

_FORMAT_VERSION = 1
MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"


def save(
    folder: Path, epoch: int, learner: Learner, state: dict[str, Any], *, best: bool = False
) -> Path:
    """Write checkpoint `epoch` and make it the latest, and the best if it is."""
    folder.mkdir(exist_ok=True)
    final, temporary = folder / f"{epoch:06d}", folder / f"{epoch:06d}.tmp"
    for leftover in (temporary, final):
        shutil.rmtree(leftover, ignore_errors=True)
    temporary.mkdir()
    save_file(_contiguous(learner.agent.state_dict()), temporary / MODEL)
    save_file(_optimizer_tensors(learner), temporary / OPTIMIZER)
    for name in (MODEL, OPTIMIZER):
        sync_path(temporary / name)
    write_json(temporary / STATE, {"version": _FORMAT_VERSION, "epoch": epoch, **state})
    temporary.rename(final)
    sync_path(folder)
    # The latest last: a crash before it makes this epoch anew, best pointer included.
    for name in ("best", "latest") if best else ("latest",):
        point(folder, name, epoch)
    return final


def point(folder: Path, name: str, epoch: int) -> None:
    """Make `latest` or `best` mean one checkpoint."""
    write_json(folder / f"{name}.json", {"checkpoint": f"{epoch:06d}"})


def find(folder: Path, name: str = "latest") -> Path | None:
    """The checkpoint that `latest`, `best` or an epoch number means; None if there is none."""
    if name.isdecimal():
        path = folder / f"{int(name):06d}"
        return path if path.is_dir() else None
    pointer = folder / f"{name}.json"
    if not pointer.exists():
        return None
    path = folder / read_json(pointer)["checkpoint"]
    return path if path.is_dir() else None


def names(folder: Path) -> list[str]:
    """What `find` can be asked for."""
    pointers = [name for name in ("latest", "best") if find(folder, name) is not None]
    epochs = sorted(path.name for path in folder.glob("[0-9]*") if path.name.isdecimal())
    return [*pointers, *(str(int(epoch)) for epoch in epochs)]


def prune(folder: Path, keep_interval: int | None) -> None:
    """Remove what is neither latest, best nor periodic, and what a crash left behind."""
    kept = {find(folder, "latest"), find(folder, "best")}
    for path in folder.iterdir():
        if not path.is_dir() or path in kept:
            continue
        periodic = keep_interval and path.name.isdecimal() and int(path.name) % keep_interval == 0
        if not periodic:
            shutil.rmtree(path)


def load_agent(path: Path, agent: Agent) -> None:
    """Fill an agent's weights; shapes that differ are an error that names them."""
    device = agent.discounts.device
    tensors = _load(path / MODEL, device)
    try:
        agent.load_state_dict(tensors)
    except RuntimeError as error:
        raise ValueError(
            f"{path} does not fit this agent: sizes of networks must be those it was trained "
            f"with; was its config.json changed, or are custom parts missing?\n{error}"
        ) from error


def load_learner(path: Path, learner: Learner) -> dict[str, Any]:
    """Fill weights and optimiser; return the run's counters."""
    state: dict[str, Any] = read_json(path / STATE)
    if state["version"] != _FORMAT_VERSION:
        raise ValueError(
            f"{path} has checkpoint format {state['version']}, this amago reads "
            f"{_FORMAT_VERSION}; resume it with the amago that wrote it"
        )
    load_agent(path, learner.agent)
    tensors = _load(path / OPTIMIZER, learner.agent.discounts.device)
    for index, parameter in enumerate(learner.parameters):
        names = ("step", "exp_avg", "exp_avg_sq")
        if f"{index}.step" in tensors:
            learner.optimizer.state[parameter] = {n: tensors[f"{index}.{n}"] for n in names}
    return state


def _load(path: Path, device: torch.device) -> dict[str, Tensor]:
    try:
        return load_file(path, device=str(device))
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{path} is damaged ({error}); restore it from a copy, or point latest.json at "
            "another checkpoint"
        ) from error


def _optimizer_tensors(learner: Learner) -> dict[str, Tensor]:
    tensors = {}
    for index, parameter in enumerate(learner.parameters):
        for name, value in learner.optimizer.state.get(parameter, {}).items():
            tensors[f"{index}.{name}"] = torch.as_tensor(value)
    return _contiguous(tensors)


def _contiguous(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().contiguous() for name, value in tensors.items()}
