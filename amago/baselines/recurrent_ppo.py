"""Recurrent PPO (sb3-contrib) with amago's inputs, environments, evaluations and run folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.callbacks import BaseCallback

from amago.agent.device import resolve_device
from amago.baselines.catalogue import described
from amago.baselines.lanes import Sb3Lanes
from amago.baselines.ppo_policy import MaskedLstmPolicy, PpoPolicy, RowFeatures
from amago.baselines.rows import RowVectors
from amago.baselines.settings import PpoSettings
from amago.config import Config
from amago.envs.registry import make_vector
from amago.evaluation.play import PlaySettings, make_lanes
from amago.process import prepare_process
from amago.saved.header import write_header
from amago.seeding import derive
from amago.training.evaluation import (
    evaluation_settings,
    final_test_settings,
    play_after,
    random_player,
    write_result,
)
from amago.training.hooks import Epoch, StopWhen
from amago.training.logger import Logger
from amago.training.loop import Clock, flatten
from amago.training.run import epoch_steps
from amago.training.start import claim
from amago.training.trackers.tracker import Pictures
from amago.training.view import View
from amago.types import VectorEnv

METHOD = "recurrent-ppo"
_LOGGED = {
    "train/policy_gradient_loss": "loss/actor",
    "train/value_loss": "loss/critic",
    "train/approx_kl": "policy/kl",
    "train/clip_fraction": "policy/clipped",
}
"""Names of Stable-Baselines3, and amago's for the same."""
_NEVER = 10**9
"""Iterations between lines of Stable-Baselines3's own log."""


@dataclass
class _PpoRun:
    """One run of the baseline: its parts and counters."""

    folder: Path
    config: Config
    settings: PpoSettings
    seed: int
    lanes: Sb3Lanes
    eval_env: VectorEnv
    model: RecurrentPPO
    logger: Logger
    steps_per_epoch: int
    epoch: int = 0
    updates: int = 0
    seconds: float = 0.0

    @property
    def env_steps(self) -> int:
        return int(self.model.num_timesteps)

    @property
    def counters(self) -> dict[str, Any]:
        return {
            "epochs": self.epoch,
            "env_steps": self.env_steps,
            "updates": self.updates,
            "seconds": self.seconds,
        }

    def policy(self, settings: PlaySettings) -> PpoPolicy:
        """The networks as they play now."""
        networks: Any = self.model.policy
        return PpoPolicy(
            networks, self.lanes.rows, seed=settings.action_seed, greedy=settings.greedy
        )

    def passed(self, running: float = 0.0) -> float:
        """Share of training that is over, by epochs or by the clock, with the running epoch's
        seconds."""
        by_epochs, limit = self.epoch / self.config.run.epochs, self.config.run.max_minutes
        if limit is None:
            return by_epochs
        by_clock = (self.seconds + running) / (60 * limit) if limit else 1.0
        return min(1.0, max(by_epochs, by_clock))

    def count_update(self, *_: Any) -> None:
        """Called after every step of the optimiser: an epoch may end before its last pass."""
        self.updates += 1


def train(
    folder: Path,
    config: Config,
    seed: int,
    settings: PpoSettings,
    view: View,
    *,
    preset: str = "",
    stop_when: StopWhen | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Train and test the baseline in a new run folder; the result, as in result.json.

    Ends after the configuration's epochs or minutes, or once `stop_when` says so of one.
    """
    prepare_process(config.run.threads)
    with _opened(folder, config, seed, settings, preset, overwrite) as run:
        view.begin(folder)
        while not _epoch(run, view, stop_when):
            pass
        view.phase("final test")
        tested = final_test_settings(config, seed)
        lanes = run.lanes.lanes
        placed = replace(tested, curriculum=lanes.curriculum)
        policy = run.policy(tested)
        result = write_result(folder, policy, lanes.spec, config, placed, run.counters)
        run.logger.end(result, Pictures(None, None))
        return result


@contextlib.contextmanager
def _opened(
    folder: Path, config: Config, seed: int, settings: PpoSettings, preset: str, overwrite: bool
) -> Iterator[_PpoRun]:
    """A new run with its folder; what fails before training leaves nothing behind."""
    with contextlib.ExitStack() as held:
        with contextlib.ExitStack() as opened:
            lock = claim(folder, seed, opened, overwrite=overwrite)
            write_header(folder, config, seed, preset, {}, described(METHOD, settings))
            env = make_vector(config.env, seed=derive(seed, "envs"), num_lanes=config.env.num_lanes)
            opened.callback(env.close)
            eval_env = make_lanes(config.env, evaluation_settings(config, seed))
            opened.callback(eval_env.close)
            lanes = Sb3Lanes(env, RowVectors(env.spec))
            model = _model(lanes, config, settings, seed)
            logger = Logger(folder, config)
            opened.pop_all()
        held.callback(lock.release)
        for part in (eval_env, env, logger):
            held.callback(part.close)
        run = _PpoRun(folder, config, settings, seed, lanes, eval_env, model, logger, model.n_steps)
        model.policy.optimizer.register_step_post_hook(run.count_update)
        yield run


def _model(lanes: Sb3Lanes, config: Config, settings: PpoSettings, seed: int) -> RecurrentPPO:
    spec = lanes.lanes.spec
    heads = list(config.heads.hidden)
    return RecurrentPPO(
        MaskedLstmPolicy,
        lanes,
        learning_rate=settings.learning_rate,
        n_steps=epoch_steps(config, spec),
        batch_size=settings.batch_rows,
        n_epochs=settings.passes,
        gamma=settings.discount or config.agent.resolve_acting(spec.horizon),
        gae_lambda=settings.gae_lambda,
        clip_range=settings.clip,
        target_kl=settings.target_kl,
        ent_coef=settings.entropy,
        policy_kwargs={
            "features_extractor_class": RowFeatures,
            "features_extractor_kwargs": {"rows": lanes.rows, "config": config},
            "lstm_hidden_size": config.transformer.model_dim,
            "net_arch": {"pi": heads, "vf": heads},
            "normalize_images": False,
        },
        seed=derive(seed, "weights") % 2**32,
        device=resolve_device(config, spec),
    )


def _epoch(run: _PpoRun, view: View, stop_when: StopWhen | None) -> bool:
    """Collect, learn, evaluate and log, as in amago's own loop; whether this was the last."""
    clock, epoch, updates = Clock(), run.epoch + 1, run.updates
    view.phase("collecting")
    rows_per_epoch = run.steps_per_epoch * run.lanes.num_envs
    rate = run.settings.learning_rate * (1 - (1 - run.settings.final_fraction) * run.passed())
    run.model.lr_schedule = lambda _: rate
    run.model.learn(
        rows_per_epoch,
        _Laps(clock, view),
        log_interval=_NEVER,
        reset_num_timesteps=epoch == 1,
    )
    _update_statistics(run)
    clock.lap("learn_seconds")
    lanes = run.lanes.lanes
    lanes.curriculum = lanes.curriculum  # all lanes go on from where the furthest one is
    run.epoch = epoch
    metrics = {"epoch": epoch, **flatten("rollout", run.lanes.take_records()), **_losses(run)}
    metrics |= {"env_steps": run.env_steps, "updates": run.updates}
    last = run.passed(clock.total()) >= 1.0
    if last or epoch % run.config.run.eval_interval == 0:
        view.phase("evaluating")
        metrics |= _evaluate(run)
    clock.lap("eval_seconds")
    run.seconds += clock.total()
    timing = {
        "epoch": epoch,
        "seconds": clock.total(),
        **clock.laps,
        "env_steps_per_second": rows_per_epoch / max(clock.laps["collect_seconds"], 1e-9),
        "updates_per_second": (run.updates - updates) / max(clock.laps["learn_seconds"], 1e-9),
    }
    run.logger.write(metrics, timing)
    view.epoch(metrics, timing)
    told = Epoch(run.folder, epoch, run.config.run.epochs, metrics, timing)
    return last or (stop_when is not None and bool(stop_when(told)))


def _update_statistics(run: _PpoRun) -> None:
    """After learning: rows are collected and learned from with the same statistics."""
    features: Any = run.model.policy.features_extractor
    rows = torch.from_numpy(run.model.rollout_buffer.observations).to(run.model.device)
    features.update_statistics(rows.reshape(-1, rows.shape[-1]))


def _losses(run: _PpoRun) -> dict[str, float]:
    known = run.model.logger.name_to_value
    found = {ours: float(known[theirs]) for theirs, ours in _LOGGED.items()}
    return {**found, "policy/entropy": -float(known["train/entropy_loss"])}


def _evaluate(run: _PpoRun) -> dict[str, Any]:
    settings = evaluation_settings(run.config, run.seed, run.epoch)
    curriculum = run.lanes.lanes.curriculum
    metrics = flatten(
        "eval", play_after(run.epoch, run.policy(settings), run.eval_env, settings, curriculum)
    )
    if run.epoch > run.config.run.eval_interval:
        return metrics
    player = random_player(run.lanes.lanes.spec, run.seed)
    played = play_after(run.epoch, player, run.eval_env, settings, curriculum)
    return metrics | flatten("random", played)


class _Laps(BaseCallback):
    """Tells collecting from learning, which follow each other within one call."""

    def __init__(self, clock: Clock, view: View) -> None:
        super().__init__()
        self._clock, self._view = clock, view

    def _on_rollout_end(self) -> None:
        self._clock.lap("collect_seconds")
        self._view.phase("learning")

    def _on_step(self) -> bool:
        return True
