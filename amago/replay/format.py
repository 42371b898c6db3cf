"""What a store says about itself, and whether that fits the one who opens it."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict
from typing import Any

import numpy as np

from amago.goals import GoalSpec, spec_from
from amago.types import EnvSpec, Trajectory

STORE_VERSION = 2

_KEY = struct.Struct(">cQ")


def key_of(trajectory_id: int) -> bytes:
    """The database key of an id; protected ids are negative and have their own namespace."""
    if trajectory_id < 0:
        return _KEY.pack(b"p", -trajectory_id - 1)
    return _KEY.pack(b"t", trajectory_id)


def id_of(key: bytes | memoryview) -> int:
    namespace, number = _KEY.unpack(key)
    return int(number) if namespace == b"t" else -int(number) - 1


def spaces_of(spec: EnvSpec) -> str:
    """The observation and action spaces of a spec, and its goals if it has any, as JSON."""
    spaces: dict[str, Any] = {"obs": {key: asdict(value) for key, value in spec.obs.items()}}
    spaces["action"] = asdict(spec.action)
    if spec.goals is not None:
        spaces["goals"] = asdict(spec.goals)
    return json.dumps(spaces, sort_keys=True)


def goals_in(spaces: str) -> GoalSpec | None:
    """The goals in what spaces_of wrote."""
    goals = json.loads(spaces).get("goals")
    return None if goals is None else spec_from(goals)


def obs_of(spaces: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Dtype and shape of each observation in what spaces_of wrote."""
    obs = json.loads(spaces)["obs"]
    return {key: (np.dtype(o["dtype"]).name, tuple(o["shape"])) for key, o in obs.items()}


def check_version(path: object, version: int) -> None:
    if version != STORE_VERSION:
        raise ValueError(
            f"expected the replay store {path} to have format {STORE_VERSION}, got format "
            f"{version}; use the amago version that wrote it, or another path"
        )


def check_same_spaces(path: object, stored: str, spec: EnvSpec) -> None:
    """ValueError naming every field in which the stored spaces are not those of the spec."""
    here, there = _leaves(json.loads(spaces_of(spec))), _leaves(json.loads(stored))
    differing = [
        f"{name}: expected {here.get(name, 'absent')}, got {there.get(name, 'absent')}"
        for name in sorted(here.keys() | there.keys())
        if here.get(name) != there.get(name)
    ]
    if differing:
        raise ValueError(
            f"the replay store {path} holds trajectories of other spaces ({'; '.join(differing)}); "
            "open it with the environment that filled it, or choose another path"
        )


def _leaves(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        flat |= (
            _leaves(value, f"{prefix}{name}.")
            if isinstance(value, dict)
            else {prefix + name: value}
        )
    return flat


def check_trajectory(trajectory: Trajectory, spec: EnvSpec) -> None:
    """ValueError when a trajectory is empty or was not made by an environment of this spec."""
    if trajectory.num_steps < 1:
        raise ValueError(
            f"expected a trajectory of at least 1 step (2 rows), got {trajectory.num_steps} "
            "steps; record the reset row and every row after it"
        )
    expected = {key: (np.dtype(obs.dtype), tuple(obs.shape)) for key, obs in spec.obs.items()}
    received = {key: (value.dtype, value.shape[1:]) for key, value in trajectory.obs.items()}
    if expected != received:
        raise ValueError(
            f"expected observations {_listing(expected)}, got {_listing(received)}; "
            "record what the environment's spec declares"
        )
    action = trajectory.prev_action
    if (action.dtype, action.shape[1:]) != (spec.action.stored_dtype, spec.action.shape):
        raise ValueError(
            f"expected {spec.action.kind} actions as {spec.action.stored_dtype} "
            f"{spec.action.shape} per row of prev_action, got {action.dtype} {action.shape[1:]}; "
            "store agent actions with ActionSpec.stored_dtype"
        )
    if spec.goals is not None:
        _check_goals(trajectory, spec.goals)


def _check_goals(trajectory: Trajectory, spec: GoalSpec) -> None:
    instruction, achieved = trajectory.instruction, trajectory.achieved
    if instruction is None or achieved is None or trajectory.progress is None:
        raise ValueError(
            "expected instruction, progress and achieved goals in a trajectory of an environment "
            "with goals, got some of them as None; record them as Timesteps carry them"
        )
    fits = [
        array.dtype == spec.dtype and array.ndim == 2 and array.shape[1] == spec.size
        for array in (instruction, achieved[1])
    ]
    if not (all(fits) and 1 <= len(instruction) <= spec.max_goals):
        raise ValueError(
            f"expected 1 to {spec.max_goals} goals {spec.dtype} [{spec.size}] in an instruction, "
            f"and achieved goals of that form, got {instruction.dtype} {instruction.shape} and "
            f"{achieved[1].dtype} {achieved[1].shape}; make them with GoalSpec.goals"
        )


def _listing(arrays: dict[str, tuple[Any, Any]]) -> str:
    rows = (f"{key} {dtype} {shape}" for key, (dtype, shape) in sorted(arrays.items()))
    return ", ".join(rows) or "none"
