"""Settings of the environments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from amago.checks import at_least, at_most

_MOST_TASKS = 1000


@dataclass(frozen=True)
class EnvSettings:
    id: str = "CartPole-v1"
    """A Gymnasium id (`CartPole-v1`, `module:Name-v0`), one of amago's own (`amago/TMaze-v0`), or
    the class of an environment (`module:Class`)."""
    ids: tuple[str, ...] = ()
    """Several environments with equal spaces, trained together, in place of `id`. Arguments of
    one follow a question mark: `amago/DarkKeyToDoor-v0?grid=4&reward_scale=1000`."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Arguments of the environment's constructor."""
    wrappers: tuple[str, ...] = ()
    """Gymnasium wrappers, the innermost first: `gymnasium.wrappers:NormalizeReward`,
    `my_module:MyWrapper?size=3`."""
    num_lanes: int = 24
    """Parallel environments while collecting."""
    eval_lanes: int = 32
    """Parallel environments while evaluating."""
    num_workers: int = 0
    """Worker processes that run the environments; 0: run them in this process."""
    trials: int | None = None
    """Episodes per rollout (k-trial meta-RL); memory is kept from one to the next."""
    horizon: int | None = None
    """Steps per rollout. With `trials` unset, episodes follow each other until the horizon."""
    horizon_is_terminal: bool = True
    """Reaching `horizon` is terminal, as part of the task. Off: it is a truncation, and values
    bootstrap there."""
    instruction: str = ""
    """Instruction in every world, in place of those that the environment draws: `eat cow x2`."""

    on_error: Literal["raise", "restart"] = "raise"
    """When an environment fails: end the run, or cut its rollout off and replace it (up to 20
    times per lane)."""
    timeout_seconds: float = 600.0
    """Longest that a step of an environment may take; with workers, one step of a worker's lanes.
    After half this time a warning names the environment; after all of it the run fails."""

    def __post_init__(self) -> None:
        at_least(1, self, "env", "num_lanes", "eval_lanes", "trials", "horizon")
        at_least(0, self, "env", "num_workers")
        at_most(100_000, self, "env", "num_lanes", "eval_lanes")
        at_most(1000, self, "env", "num_workers")
        at_least(0.1, self, "env", "timeout_seconds")
        if len(self.ids) > _MOST_TASKS:
            raise ValueError(
                f"--env.ids takes at most {_MOST_TASKS} environments, got {len(self.ids)}"
            )

    @property
    def imports(self) -> bool:
        """Whether making the environment imports modules that these settings name."""
        return bool(self.wrappers) or any(":" in env_id for env_id in (self.id, *self.ids))
