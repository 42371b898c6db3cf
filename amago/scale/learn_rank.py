"""A learner rank that is not the first: learns from what it is sent, and writes nothing."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass

import cloudpickle  # type: ignore[import-untyped]

from amago.agent.agent import Agent, Parts
from amago.agent.device import resolve_device
from amago.agent.update import Learner
from amago.config import Config
from amago.process import prepare_process
from amago.saved import checkpoint
from amago.scale.learn_feed import receive
from amago.scale.learn_group import Group, LearnerLostError, Seat, digest
from amago.seeding import seed_torch
from amago.training.feed import uploaded
from amago.types import EnvSpec


@dataclass(frozen=True)
class Plan:
    """All that a rank needs to become a copy of the first one."""

    config: Config
    spec: EnvSpec
    seed: int
    parts: Parts
    snapshot: checkpoint.Snapshot
    """Weights, optimiser, and the counters of the learner."""

    def learner(self, seat: Seat) -> Learner:
        config = self.config
        device = resolve_device(config, self.spec, seat.local_rank)
        agent = Agent(self.spec, config, self.parts).to(device)
        planned = config.run.epochs * config.run.updates_per_epoch
        learner = Learner(agent, config.agent, config.optim, planned)
        checkpoint.fill_learner(learner, self.snapshot)
        for name, value in self.snapshot.state.items():
            setattr(learner, name, value)
        return learner


COUNTERS = ("updates", "skipped", "skipped_in_a_row")
"""Of the learner, in a plan's snapshot."""


@dataclass(frozen=True)
class EpochOrder:
    """What the first rank asks for: updates of one epoch; the epoch -1 ends the run."""

    number: int
    updates: int


def follow(own: Seat) -> None:
    """Learn beside the first rank until it says stop."""
    group = Group(own, lost=lambda: "the first learner is gone")
    try:
        plan: Plan = cloudpickle.loads(group.tell())
        prepare_process(plan.config.run.threads)
        learner = plan.learner(own)
        group.use(learner.agent.discounts.device, plan.config.scale.timeout_seconds)
        learner.add = group.add
        while True:
            epoch: EpochOrder = group.tell()
            if epoch.number < 0:
                break
            _learn(learner, plan.seed, epoch, group)
    finally:
        group.close()


def _learn(learner: Learner, seed: int, epoch: EpochOrder, group: Group) -> None:
    seed_torch(seed, "learning", epoch.number)
    device = learner.agent.discounts.device
    for share in uploaded(receive(epoch.updates, group), device):
        learner.learn(share)
    group.gather(digest(learner.agent.state_dict()))


def main(rank: str, size: str, address: str) -> None:
    """A rank that the first one has launched: it ends with it, not by Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        follow(Seat(int(rank), int(size), int(rank), address))
    except LearnerLostError as error:
        print(f"learner {rank}: {error}; it stops, too", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
