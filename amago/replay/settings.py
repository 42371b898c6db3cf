"""Settings of the replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from amago.checks import at_least, at_most


@dataclass(frozen=True)
class ReplaySettings:
    capacity: int = 20_000
    """Number of trajectories kept; the oldest are deleted first. Imported data does not count."""
    batch_size: int = 24
    """Sequences per update."""
    batch_rows: int | None = None
    """Transitions per update, in place of `batch_size`: as many sequences as hold them on average,
    so that short rollouts teach as much per update as long ones."""
    context_length: int | None = None
    """Transitions per sequence, and steps that memory keeps while acting; unset: the horizon."""

    def __post_init__(self) -> None:
        at_least(1, self, "replay", "capacity", "batch_size", "batch_rows", "context_length")
        at_most(10**9, self, "replay", "capacity")
        at_most(10**7, self, "replay", "batch_size", "batch_rows", "context_length")


@dataclass(frozen=True)
class RelabelSettings:
    """Hindsight instruction relabeling (paper Algorithm 1, appendix B)."""

    relabel: Literal["none", "some", "all"] = "some"
    """How many uncompleted goals are replaced by achieved ones: none, a random number, or all."""
    importance_sampling: bool = True
    """Prefer goals that are rare in the replay. Off: choose among achieved goals uniformly."""
    multi_goal: bool = True
    """Off: train with the first goal of each instruction alone, as HER does. Where the world
    depends on the number of goals (Package Delivery), also set --env.kwargs.max-goals 1."""
