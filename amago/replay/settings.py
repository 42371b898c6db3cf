"""Settings of the replay."""

from __future__ import annotations

from dataclasses import dataclass

from amago.checks import at_least


@dataclass(frozen=True)
class ReplaySettings:
    capacity: int = 20_000
    """Trajectories kept; the oldest leave first. Protected ones do not count."""
    batch_size: int = 24
    """Windows per update."""
    context_length: int | None = None
    """Transitions per window, and steps that acting remembers; unset: the whole horizon."""
    prefetch: int = 2
    """Batches prepared ahead of the learner."""

    def __post_init__(self) -> None:
        at_least(1, self, "replay", "capacity", "batch_size", "context_length")
        at_least(0, self, "replay", "prefetch")
