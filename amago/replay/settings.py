"""Settings of the replay."""

from __future__ import annotations

from dataclasses import dataclass


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
        for name in ("capacity", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"--replay.{name.replace('_', '-')} must be at least 1, "
                    f"got {getattr(self, name)}"
                )
        if self.context_length is not None and self.context_length < 1:
            raise ValueError(
                f"--replay.context-length must be at least 1 or unset, got {self.context_length}"
            )
        if self.prefetch < 0:
            raise ValueError(f"--replay.prefetch must be 0 or more, got {self.prefetch}")
