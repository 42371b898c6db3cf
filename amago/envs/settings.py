"""Settings of the environments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from amago.checks import at_least


@dataclass(frozen=True)
class EnvSettings:
    id: str = "CartPole-v1"
    """A Gymnasium id (`CartPole-v1`, `module:Name-v0`) or one of amago's own (`amago/TMaze-v0`)."""
    ids: tuple[str, ...] = ()
    """Several environments of equal spaces at once, in place of `id`; arguments of one follow
    a question mark: `amago/DarkKeyToDoor-v0?grid=4&reward_scale=1000`."""
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
    instruction: str = ""
    """Asked for in every world, in place of what the environment would draw: `eat cow x2`."""

    def __post_init__(self) -> None:
        at_least(1, self, "env", "num_lanes", "eval_lanes", "trials", "horizon")
        at_least(0, self, "env", "num_workers")
