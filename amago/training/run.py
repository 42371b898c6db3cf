"""A run: its folder, its parts, and what a checkpoint must remember of them.

`start.py` begins a run or takes it up again; `assemble.py` puts its parts together.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amago.agent.agent import Agent, Parts
from amago.agent.update import Learner
from amago.config import Config
from amago.envs.registry import MakeEnv
from amago.replay.guard import WriterLock
from amago.replay.sampler import Sampler
from amago.replay.store import TrajectoryStore
from amago.rollout.exploration import Exploration
from amago.saved import checkpoint, kept
from amago.seeding import derive
from amago.training.collection import Collection, LocalCollection
from amago.training.feed import Feed, LocalFeed
from amago.training.logger import Logger
from amago.types import EnvSpec, VectorEnv

_DEFAULT_STEPS = 1000
"""Steps per lane and epoch for environments without a horizon."""


@dataclass(frozen=True)
class Custom:
    """A user's own classes: networks, and a function that makes the environment."""

    parts: Parts = field(default_factory=Parts)
    make_env: MakeEnv | None = None

    def names(self) -> dict[str, str]:
        names = self.parts.names()
        if self.make_env is not None:
            names["env"] = getattr(self.make_env, "__qualname__", str(self.make_env))
        return names


@dataclass
class TrainingRun:
    """Everything that one training process holds, and the counters of its progress."""

    folder: Path
    config: Config
    seed: int
    env: VectorEnv
    eval_env: VectorEnv
    learner: Learner
    exploration: Exploration
    store: TrajectoryStore
    sampler: Sampler
    logger: Logger
    steps_per_epoch: int
    custom: Custom = field(default_factory=Custom)
    collection: Collection = field(default_factory=LocalCollection)
    """What plays the environments."""
    feed: Feed = field(default_factory=LocalFeed)
    """What the learner learns from."""
    window: tuple[int, int] | None = None
    """The replay's window that the counters include, where others go on filling it; None: all."""
    collected: int | None = None
    """Epochs' shares of single lanes that the counters include, where that is not all."""
    epoch: int = 0
    """Epochs completed."""
    env_steps: int = 0
    best_return: float = -math.inf
    best_epoch: int | None = None
    """The epoch whose evaluation gave `best_return`."""
    seconds: float = 0.0
    lock: WriterLock | None = None
    """The right to write to the folder, given back by `close`."""
    complete: checkpoint.Snapshot | None = None
    """The end of the last complete epoch, from which a resumed run goes on exactly."""
    saved_epoch: int = 0
    playing: bool = True
    """Whether environments, learners and collectors are open."""

    @property
    def agent(self) -> Agent:
        return self.learner.agent

    @property
    def out_of_time(self) -> bool:
        """Whether training has taken as long as it may."""
        limit = self.config.run.max_minutes
        return limit is not None and self.seconds >= 60 * limit

    def end_epoch(self) -> None:
        """Remember this moment: from here on the run can be taken up again."""
        self.complete = checkpoint.take(self.epoch, self.learner, self._state())

    def save(self, *, best: bool = False) -> None:
        """Make a durable checkpoint; only then let old trajectories and checkpoints go."""
        self.end_epoch()
        self._write(best)
        self.store.evict(None if self.window is None else self.window[0])

    def save_complete(self) -> int:
        """Save the last complete epoch unless it is saved; the epoch that a resume goes on from.

        Nothing is evicted, because trajectories of the epoch that was broken off have already
        moved the replay's window.
        """
        if self.complete is not None and self.complete.epoch > self.saved_epoch:
            self._write(best=False)
        return self.saved_epoch

    def _write(self, best: bool) -> None:
        assert self.complete is not None
        self.store.sync()
        self.logger.sync()
        folder = self.folder / "checkpoints"
        checkpoint.save(folder, self.complete, best=best)
        self.saved_epoch = self.complete.epoch
        kept.prune(folder, self.config.run.keep_interval)

    def _state(self) -> dict[str, Any]:
        return {
            "env_steps": self.env_steps,
            "updates": self.learner.updates,
            "skipped": self.learner.skipped,
            "exploration_steps": self.exploration.steps,
            "episodes": self.env.episodes.tolist(),
            "curriculum": self.env.curriculum,
            "window": list(self.window or self.store.window),
            "collected": self.collected,
            "best_return": None if math.isinf(self.best_return) else self.best_return,
            "best_epoch": self.best_epoch,
            "offsets": list(self.logger.offsets),
            "seconds": self.seconds,
        }

    def end_play(self) -> None:
        """End what plays and learns, also in other processes; agent, logger and lock stay."""
        if not self.playing:
            return
        self.playing = False
        with contextlib.ExitStack() as closing:
            for part in (self.store, self.eval_env, self.env, self.feed, self.collection):
                closing.callback(part.close)

    def close(self) -> None:
        with contextlib.ExitStack() as closing:
            if self.lock is not None:
                closing.callback(self.lock.release)
            closing.callback(self.logger.close)
            closing.callback(self.end_play)


def epoch_steps(config: Config, spec: EnvSpec) -> int:
    """Steps that every lane makes in an epoch, at least."""
    return config.rollout.steps_per_epoch or spec.horizon or _DEFAULT_STEPS


def make_exploration(
    config: Config, env: VectorEnv, seed: int, steps_per_epoch: int
) -> Exploration:
    """Noise of some or all lanes, annealed over the steps that the run plans for each."""
    epochs = max(config.run.epochs - config.rollout.offline_epochs, 0)
    planned = int(config.exploration.anneal_fraction * epochs * steps_per_epoch)
    return Exploration(
        config.exploration,
        env.spec,
        num_lanes=env.num_lanes,
        horizons=env.horizons,
        anneal_steps=config.exploration.anneal_steps or max(planned, 1),
        rollout_steps=steps_per_epoch,
        seed=derive(seed, "exploration"),
    )
