"""A run: its folder, its parts, and what a checkpoint must remember of them.

`start.py` begins a run or takes it up again.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from amago.agent.agent import Agent, Parts, resolve_context_length
from amago.agent.update import Learner
from amago.config import Config
from amago.envs.elsewhere import LanesElsewhere
from amago.envs.registry import MakeEnv, make_vector
from amago.evaluation.play import make_lanes
from amago.replay.guard import WriterLock
from amago.replay.relabel import StoreRelabeler
from amago.replay.sampler import Sampler
from amago.replay.store import TrajectoryStore
from amago.rollout.exploration import Exploration
from amago.seeding import derive, seed_torch
from amago.training import checkpoint, kept
from amago.training.collection import Collection, LocalCollection
from amago.training.device import resolve_device
from amago.training.evaluation import evaluation_settings
from amago.training.feed import Feed, LocalFeed
from amago.training.files import read_json
from amago.training.logger import Logger
from amago.training.process import prepare_process
from amago.training.source import find_source
from amago.types import EnvSpec, VectorEnv

_LOG = logging.getLogger("amago")
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
        """Make a durable checkpoint of now; only then let old trajectories and old ones go."""
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

    def close(self) -> None:
        with contextlib.ExitStack() as closing:
            if self.lock is not None:
                closing.callback(self.lock.release)
            played = (self.eval_env, self.env, self.collection)
            for part in (self.logger, self.store, *played, self.feed):
                closing.callback(part.close)


def assemble(
    folder: Path,
    config: Config,
    seed: int,
    custom: Custom,
    latest: Path | None,
    *,
    what_is_left: bool = False,
) -> TrainingRun:
    """All parts of a run; what was opened is closed again when a later part fails.

    `what_is_left` accepts a replay that has turned over since the checkpoint.
    """
    with contextlib.ExitStack() as opened:
        run = _build(folder, config, seed, custom, latest, what_is_left, opened)
        opened.pop_all()
        return run


def _build(
    folder: Path,
    config: Config,
    seed: int,
    custom: Custom,
    latest: Path | None,
    what_is_left: bool,
    opened: contextlib.ExitStack,
) -> TrainingRun:
    prepare_process(config.run.threads)
    state = {} if latest is None else checkpoint.read_state(latest)

    # Lanes that collectors play need no environments here.
    make: Callable[..., VectorEnv] = LanesElsewhere if config.scale.collectors else make_vector
    env = make(
        config.env,
        seed=derive(seed, "envs"),
        num_lanes=config.env.num_lanes,
        make_env=custom.make_env,
    )
    opened.callback(env.close)
    eval_env = make_lanes(config.env, evaluation_settings(config, seed), custom.make_env)
    opened.callback(eval_env.close)
    seed_torch(seed, "weights")
    agent = Agent(env.spec, config, custom.parts).to(resolve_device(config, env.spec))
    planned_updates = config.run.epochs * config.run.updates_per_epoch
    learner = Learner(agent, config.agent, config.optim, planned_updates)
    steps_per_epoch = config.rollout.steps_per_epoch or env.spec.horizon or _DEFAULT_STEPS
    exploration = make_exploration(config, env, seed, steps_per_epoch)
    if latest is not None:
        checkpoint.load_learner(latest, learner)
    elif config.run.start_from:
        _start_from(config.run.start_from, agent)
    # All that may fail was read; from here on the folder is changed.
    _go_back_to(folder, config, state)
    keep_all = config.scale.mode == "async" and not what_is_left
    store = _open_store(
        folder / "replay", env.spec, config.replay.capacity, state, what_is_left, keep_all
    )
    opened.callback(store.close)
    sampler = _make_sampler(config, env.spec, store, seed)
    metrics, timing = state.get("offsets", (0, 0))
    logger = Logger(
        folder,
        offsets=(metrics, timing),
        epoch=state.get("epoch", 0),
        wandb_project=config.run.wandb_project,
    )
    opened.callback(logger.close)
    run = TrainingRun(
        folder, config, seed, env, eval_env, learner, exploration, store, sampler, logger,
        steps_per_epoch, custom,
    )  # fmt: skip
    if state:
        _restore_counters(run, state)
    return run


def _make_sampler(config: Config, spec: EnvSpec, store: TrajectoryStore, seed: int) -> Sampler:
    """Batches of the replay; updates in parts take them as many times as large."""
    parts, rows = config.optim.accumulate, config.replay.batch_rows
    return Sampler(
        store,
        config.replay.batch_size * parts,
        resolve_context_length(config, spec),
        derive(seed, "batches"),
        StoreRelabeler(store, config.relabel) if _relabels(config, spec) else None,
        rows and rows * parts,
    )


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


def _open_store(
    path: Path,
    spec: EnvSpec,
    capacity: int,
    state: dict[str, Any],
    what_is_left: bool,
    keep_all: bool,
) -> TrajectoryStore:
    """`keep_all` keeps what was stored after the checkpoint, too."""
    low, high = state.get("window", (0, 0))
    if state and keep_all:
        return TrajectoryStore(path, spec, capacity)
    store = TrajectoryStore(path, spec, capacity, (low, high), what_is_left=what_is_left)
    wanted, found = min(high - low, capacity), high - store.window[0]
    if found < wanted:
        _LOG.warning(
            f"{path}: {found} of the {wanted} trajectories that this checkpoint had are left; "
            "the run goes on with them, not exactly as before"
        )
    return store


def _go_back_to(folder: Path, config: Config, state: dict[str, Any]) -> None:
    """Let a folder say what it said at a checkpoint, or at the beginning."""
    epoch = state.get("epoch", 0)
    if epoch < config.run.epochs or _result_epochs(folder) != epoch:
        (folder / "result.json").unlink(missing_ok=True)
    if (folder / "checkpoints").is_dir():
        kept.rewind(folder / "checkpoints", epoch, state.get("best_epoch"))


def _result_epochs(folder: Path) -> int | None:
    """The epochs of the agent that result.json is about."""
    path = folder / "result.json"
    result = read_json(path) if path.is_file() else None
    return result.get("epochs") if isinstance(result, dict) else None


def _start_from(name: str, agent: Agent) -> None:
    """Fill a new agent with what another one has learned."""
    try:
        source = find_source(name)
    except ValueError as error:
        raise ValueError(f"--run.start-from: {error}") from error
    discounts = source.config.agent.resolve_discounts(agent.spec.action.kind, agent.spec.horizon)
    if not torch.equal(torch.tensor(discounts), agent.discounts.cpu()):
        raise ValueError(
            f"--run.start-from {name} has learned with the discounts {discounts}, this run has "
            f"{agent.discounts.tolist()}; give it the same --agent.discounts and "
            "--agent.acting-discount"
        )
    source.fill(agent)


def _relabels(config: Config, spec: EnvSpec) -> bool:
    settings = config.relabel
    return spec.goals is not None and (settings.relabel != "none" or not settings.multi_goal)


def _restore_counters(run: TrainingRun, state: dict[str, Any]) -> None:
    run.epoch, run.env_steps, run.seconds = state["epoch"], state["env_steps"], state["seconds"]
    run.learner.updates, run.learner.skipped = state["updates"], state["skipped"]
    run.exploration.steps = state["exploration_steps"]
    run.env.episodes = np.array(state["episodes"])
    run.env.curriculum = state["curriculum"]
    if run.config.scale.mode == "async":
        low, high = state["window"]
        run.window, run.collected = (low, high), state.get("collected")
    run.saved_epoch, run.best_epoch = state["epoch"], state["best_epoch"]
    run.best_return = -math.inf if state["best_return"] is None else state["best_return"]
