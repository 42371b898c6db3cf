"""A trajectory as the store writes it; any process can make it, the store's only writes it."""

from __future__ import annotations

from dataclasses import dataclass

from amago.replay.codec import encode
from amago.replay.format import check_trajectory
from amago.replay.rarity import count
from amago.types import EnvSpec, Trajectory


@dataclass(frozen=True)
class Record:
    """The bytes of one trajectory."""

    data: bytes
    num_steps: int
    goals: bytes
    """How often each goal was achieved; empty without instructions."""


def record_of(trajectory: Trajectory, spec: EnvSpec) -> Record:
    """The record of a trajectory; ValueError unless it is one of that environment."""
    check_trajectory(trajectory, spec)
    goals = b"" if spec.goals is None else count(trajectory).to_bytes()
    return Record(encode(trajectory), trajectory.num_steps, goals)
