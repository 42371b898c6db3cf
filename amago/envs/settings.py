"""Settings of the environments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class EnvSettings:
    id: str = "CartPole-v1"
    """A Gymnasium id (`CartPole-v1`, `module:Name-v0`) or one of amago's own (`amago/TMaze-v0`)."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Arguments of the environment's constructor."""
    num_lanes: int = 24
    """Environments that are stepped together while collecting."""
    eval_lanes: int = 32
    """Environments that are stepped together while evaluating."""
    num_workers: int = 0
    """Processes that hold the lanes; 0 keeps them in this process."""
    trials: int | None = None
    """Episodes of the environment per rollout (k-trial meta-RL); memory lives through all."""
    horizon: int | None = None
    """Steps per rollout. With `trials` unset, trials are played until the horizon is met."""
    horizon_is_terminal: bool = True
    """Reaching `horizon` is part of the task (terminal) rather than a cut (bootstraps)."""

    def __post_init__(self) -> None:
        for name in ("num_lanes", "eval_lanes"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"--env.{name.replace('_', '-')} must be at least 1, got {getattr(self, name)}"
                )
        if self.num_workers < 0:
            raise ValueError(f"--env.num-workers must be 0 or more, got {self.num_workers}")
        for name in ("trials", "horizon"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"--env.{name} must be at least 1 or unset, got {value}")
