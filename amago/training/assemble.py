"""All parts of a run, put together; and how they take up what a checkpoint remembers."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from amago.agent.agent import Agent, resolve_context_length
from amago.agent.device import resolve_device
from amago.agent.update import Learner
from amago.config import Config
from amago.envs.elsewhere import LanesElsewhere
from amago.envs.registry import make_vector
from amago.evaluation.play import make_lanes
from amago.replay.relabel import StoreRelabeler
from amago.replay.sampler import Sampler
from amago.replay.store import TrajectoryStore
from amago.saved import checkpoint, kept
from amago.saved.files import read_json
from amago.saved.source import find_source
from amago.seeding import derive, seed_torch
from amago.training.cores import prepare_learner
from amago.training.evaluation import evaluation_settings
from amago.training.logger import Logger
from amago.training.restored import keeps_later, restore_counters
from amago.training.run import Custom, TrainingRun, epoch_steps, make_exploration
from amago.types import EnvSpec, VectorEnv

_LOG = logging.getLogger("amago")


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
    prepare_learner(config)
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
    steps_per_epoch = epoch_steps(config, env.spec)
    exploration = make_exploration(config, env, seed, steps_per_epoch)
    if latest is not None:
        checkpoint.load_learner(latest, learner)
    elif config.run.start_from:
        _start_from(config.run.start_from, agent)
    # All that may fail was read; from here on the folder is changed.
    _go_back_to(folder, config, state)
    keep_all = keeps_later(config.scale.mode, state) and not what_is_left
    store = _open_store(
        folder / "replay", env.spec, config.replay.capacity, state, what_is_left, keep_all
    )
    opened.callback(store.close)
    sampler = _make_sampler(config, env.spec, store, seed)
    metrics, timing = state.get("offsets", (0, 0))
    logger = Logger(
        folder,
        config,
        offsets=(metrics, timing),
        epoch=state.get("epoch", 0),
        exact=not what_is_left,
    )
    opened.callback(logger.close)
    run = TrainingRun(
        folder, config, seed, env, eval_env, learner, exploration, store, sampler, logger,
        steps_per_epoch, custom,
    )  # fmt: skip
    if state:
        restore_counters(run, state)
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
    if keep_all:
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
