"""Where an epoch's experience comes from: this process, or others (`scale/`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from amago.agent.policy import AgentPolicy
from amago.rollout.collect import collect
from amago.rollout.stats import RolloutRecord
from amago.seeding import derive

if TYPE_CHECKING:
    from amago.training.run import TrainingRun


class Collection(Protocol):
    """Fills the replay of a run."""

    def collect(self, run: TrainingRun) -> tuple[list[RolloutRecord], int]:
        """One epoch's rollouts, into the replay; their records and their number of steps.

        Moves the counters of environments and exploration.
        """

    def timing(self) -> dict[str, float]:
        """What is to be said of the epoch beside the loop's own times and rates."""

    def close(self) -> None: ...


class LocalCollection:
    """The learner's process collects, then learns."""

    def collect(self, run: TrainingRun) -> tuple[list[RolloutRecord], int]:
        policy = AgentPolicy(
            run.agent, seed=derive(run.seed, "acting", run.epoch), greedy=run.config.agent.greedy
        )
        run.exploration.begin(run.epoch)
        return collect(run.env, policy, run.exploration, run.steps_per_epoch, run.store.append)

    def timing(self) -> dict[str, float]:
        return {}

    def close(self) -> None: ...
