"""Settings of collecting and exploring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from amago.checks import at_least


@dataclass(frozen=True)
class RolloutSettings:
    steps_per_epoch: int | None = None
    """Steps per parallel environment and epoch; unset: the horizon, or 1000 without one."""
    offline_epochs: int = 0
    """Number of epochs at the start that learn from imported data alone. All epochs: offline
    learning; some: offline to online."""

    def __post_init__(self) -> None:
        at_least(1, self, "rollout", "steps_per_epoch")
        at_least(0, self, "rollout", "offline_epochs")


@dataclass(frozen=True)
class ExplorationSettings:
    """Annealed exploration noise with a random multiplier per rollout (paper Table 4)."""

    kind: Literal["annealed", "ends"] = "annealed"
    """annealed: the same schedule at all steps. ends: that schedule at the first and the last
    three steps of a rollout, .5/horizon in between (T-Maze)."""
    start: tuple[float, float] = (1.0, 0.05)
    """Noise at the first step of a rollout: (before annealing, after annealing)."""
    end: tuple[float, float] = (0.8, 0.01)
    """Noise at the last step of a rollout: (before annealing, after annealing)."""
    anneal_steps: int | None = None
    """Steps per parallel environment until noise is annealed; unset: use `anneal_fraction`."""
    anneal_fraction: float = 0.4
    """Fraction of the planned steps until noise is annealed."""

    def __post_init__(self) -> None:
        for name in ("start", "end"):
            if not all(0.0 <= value <= 1.0 for value in getattr(self, name)):
                raise ValueError(
                    f"--exploration.{name} takes two numbers in 0..1, got {getattr(self, name)}"
                )
        at_least(1, self, "exploration", "anneal_steps")
        if not 0.0 < self.anneal_fraction <= 1.0:
            raise ValueError(
                f"--exploration.anneal-fraction must be in (0, 1], got {self.anneal_fraction}"
            )
