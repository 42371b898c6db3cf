"""Settings of the replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from amago.checks import at_least


@dataclass(frozen=True)
class ReplaySettings:
    capacity: int = 20_000
    """Trajectories kept; the oldest leave first. Protected ones do not count."""
    batch_size: int = 24
    """Windows per update."""
    context_length: int | None = None
    """Transitions per window, and steps that acting remembers; unset: the whole horizon."""

    def __post_init__(self) -> None:
        at_least(1, self, "replay", "capacity", "batch_size", "context_length")


@dataclass(frozen=True)
class RelabelSettings:
    """How instructions are changed in hindsight (paper Algorithm 1, appendix B)."""

    relabel: Literal["none", "some", "all"] = "some"
    """Open goals that are replaced by what was achieved: none, a random number, or all."""
    importance_sampling: bool = True
    """Prefer goals that are rare in the replay; off: all achieved goals alike."""
    multi_goal: bool = True
    """Off: only the first goal of each instruction is asked for and relabeled (HER). Collect
    with single goals then, where the world depends on their number (Package Delivery)."""
