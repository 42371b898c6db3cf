"""The interface of natively batched tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from gymnasium import Space

from amago.goals import GoalSpec
from amago.types import Array

Outcome = tuple[Array, Array, Array, Array]
"""(reward float32, terminated bool, first bool, success bool), each [N]."""


class Task(ABC):
    """N independent worlds of one task, advanced together by NumPy.

    A rollout ends by termination only; the end of a trial within it is marked by `first` on
    the row that follows. The state between `reset_lanes` is arrays with a leading [N].
    """

    observation_space: Space[Any]
    """Space of one lane."""
    action_space: Space[Any]
    """Space of one lane."""
    horizon: int
    """Steps after which every rollout has ended."""
    num_lanes: int = 0
    goals: GoalSpec | None = None
    """What instructions are made of; see GoalTask."""

    def allocate(self, num_lanes: int) -> None:
        """Make room for N worlds; every lane must be reset before it is stepped."""
        self.num_lanes = num_lanes
        self.time = np.zeros(num_lanes, np.int64)

    @abstractmethod
    def reset_lanes(self, lanes: Array, world_seeds: Array) -> None:
        """Begin a rollout in some lanes, each in the world of its seed."""

    @abstractmethod
    def observe(self) -> dict[str, Array]:
        """Fresh observation arrays of every lane, keyed as the observation's spec is."""

    @abstractmethod
    def step(self, action: Array) -> Outcome:
        """Advance every lane by one agent action (ids [N] or vectors [N, A] in [-1, 1])."""

    def goal_rows(self) -> dict[str, Any]:
        """The fields of a Timestep that instructions need, of every lane."""
        return {}

    @abstractmethod
    def render(self, lane: int) -> Array:
        """An RGB frame of one lane."""


def check_at_least(minimum: int, **arguments: int) -> None:
    """Refuse sizes that make no world."""
    for name, value in arguments.items():
        if value < minimum:
            raise ValueError(f"expected {name} to be at least {minimum}, got {value}")
