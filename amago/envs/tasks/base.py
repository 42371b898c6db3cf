"""The interface of natively batched tasks.

Tasks import gymnasium late, inside `__init__`: listing presets then takes no time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from amago.goals import GoalSpec
from amago.types import Array

if TYPE_CHECKING:
    from gymnasium import Space

Outcome = tuple[Array, Array, Array, Array]
"""(reward float32, terminated bool, first bool, success bool), each [N]."""


@dataclass(frozen=True)
class BestPlay:
    """What perfect play earns in M worlds that it knows."""

    reward: Array
    """Of each step, [M, horizon]; zero after the end."""
    length: Array
    """Steps of each rollout, [M]."""
    success: Array
    """[M] bool."""

    @classmethod
    def whole_horizon(cls, reward: Array) -> BestPlay:
        """Rollouts that succeed, and take all steps."""
        worlds, horizon = reward.shape
        return cls(reward, np.full(worlds, horizon), np.ones(worlds, np.bool_))


class Eyes(Protocol):
    """What the player of one lane has perceived of its world since its eyes were opened."""

    def look(self) -> None:
        """Take in the current row; to be called at every row."""

    def frame(self) -> Array:
        """The world as an RGB frame, with fog over everything that was not perceived yet."""


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
    horizon_ends_rollout: ClassVar[bool] = False
    """Whether the argument `horizon` is the end of a rollout, rather than of one trial of it."""
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

    def best_play(self, world_seeds: Array) -> BestPlay | None:
        """Perfect play in the worlds of some seeds; None where nobody knows it."""
        return None

    @abstractmethod
    def render(self, lane: int) -> Array:
        """An RGB frame of one lane."""

    def eyes(self, lane: int) -> Eyes | None:
        """Eyes that open now; None where `render` shows no more than the player perceives."""
        return None


def check_at_least(minimum: int, **arguments: int) -> None:
    """Refuse sizes that make no world."""
    for name, value in arguments.items():
        if value < minimum:
            raise ValueError(f"expected {name} to be at least {minimum}, got {value}")
