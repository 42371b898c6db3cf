"""The run: collect, learn, evaluate, log, save."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from amago.agent.metrics import MetricMean
from amago.rollout.scores import summarise
from amago.rollout.stats import RolloutRecord
from amago.seeding import seed_torch
from amago.training.evaluation import activations, evaluate_run, random_play
from amago.training.feed import uploaded
from amago.training.hooks import Epoch, Hooks
from amago.training.run import TrainingRun
from amago.training.view import View
from amago.training.warnings import Warnings

_LOG = logging.getLogger("amago")
_Item = TypeVar("_Item")
_WARMUP_EPOCHS = 1
"""First epochs that only collect."""


def train(run: TrainingRun, view: View, hooks: Hooks | None = None) -> None:
    """Play epochs until the planned number is complete; a checkpoint ends the last one."""
    hooks = hooks or Hooks()
    settings = run.config.run
    warnings = Warnings(run.folder, run.config)
    if settings.epochs <= _WARMUP_EPOCHS and not run.config.rollout.offline_epochs:
        _LOG.warning("nothing is learned: the first epoch only collects; give --epochs 2 or more")
    while run.epoch < settings.epochs:
        clock = Clock()
        epoch = run.epoch + 1
        metrics: dict[str, Any] = {"epoch": epoch}
        offline = run.epoch < run.config.rollout.offline_epochs
        if offline:
            _check_data(run)
        else:
            view.phase("collecting")
            metrics |= collect_epoch(run)
        clock.lap("collect_seconds")
        if offline or run.epoch >= _WARMUP_EPOCHS:
            metrics |= learn_epoch(run, view, clock)
        clock.lap("learn_seconds")
        run.epoch = epoch
        metrics |= {"env_steps": run.env_steps, "updates": run.learner.updates}
        last = epoch == settings.epochs
        if last or epoch % settings.eval_interval == 0:
            view.phase("evaluating")
            metrics |= flatten("eval", evaluate_run(run)) | activations(run)
            if not warnings.random_play:
                metrics |= flatten("random", random_play(run))
        clock.lap("eval_seconds")
        run.seconds += clock.total()
        timing = {"epoch": epoch, "seconds": clock.total(), **clock.laps, **_rates(run, clock)}
        timing |= run.collection.timing() | run.feed.timing()
        warnings.add(metrics)
        run.logger.write(metrics, timing)
        view.epoch({**warnings.random_play, **metrics}, timing)
        improved = metrics.get("eval/return_mean", run.best_return) > run.best_return
        if improved:
            run.best_return, run.best_epoch = metrics["eval/return_mean"], epoch
        run.end_epoch()
        if last or improved or epoch % settings.save_interval == 0:
            run.save(best=improved)
        told = Epoch(run.folder, epoch, settings.epochs, dict(metrics), dict(timing))
        if hooks.after(told) or run.out_of_time:
            run.save_complete()
            break


def collect_epoch(run: TrainingRun) -> dict[str, Any]:
    """One epoch's rollouts, into the replay."""
    before, restarts = run.store.window[1], run.env.restarts
    records, steps = run.collection.collect(run)
    restarts = run.env.restarts - restarts
    run.env_steps += steps
    return {
        **flatten("rollout", records),
        "rollout/steps": steps,
        "exploration/epsilon": float(run.exploration.epsilon(np.zeros(1), 0)[0]),
        "replay/trajectories": len(run.store),
        "replay/added": run.store.window[1] - before,
        **({"env/restarts": restarts} if restarts else {}),
    }


def _check_data(run: TrainingRun) -> None:
    """An offline epoch needs something to learn from."""
    if not len(run.store):
        raise ValueError(
            f"--rollout.offline-epochs is {run.config.rollout.offline_epochs}, but the replay is "
            f"empty; fill it with `amago import npz FILE --run {run.folder}`, then go on with "
            f"`amago resume {run.folder}`"
        )


def learn_epoch(run: TrainingRun, view: View, clock: Clock) -> dict[str, Any]:
    """One epoch's gradient updates."""
    seed_torch(run.seed, "learning", run.epoch)
    start, count = run.learner.updates, run.config.run.updates_per_epoch
    device = run.agent.discounts.device
    mean = MetricMean()
    shares = uploaded(run.feed.shares(run, start, start + count), device)
    for index, share in enumerate(clock.waits("wait_seconds", shares)):
        mean.add(run.learner.learn(share))
        view.phase("learning", (index + 1) / count)
    run.feed.end_epoch(run)
    damaged = {"replay/damaged": len(run.store.damaged)} if run.store.damaged else {}
    return {**mean.read(), **damaged, "learner/skipped": run.learner.skipped}


class Clock:
    """Wall time of the parts of one epoch, and CPU time, which a busy machine lengthens less."""

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self._last_cpu = time.process_time()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now, cpu = time.perf_counter(), time.process_time()
        self.laps[name], self._last = now - self._last, now
        self.laps[name.replace("_seconds", "_cpu_seconds")] = cpu - self._last_cpu
        self._last_cpu = cpu

    def waits(self, name: str, items: Iterable[_Item]) -> Iterator[_Item]:
        """The same items; what their making kept the consumer waiting is one more time."""
        self.laps[name] = 0.0
        before = time.perf_counter()
        for item in items:
            self.laps[name] += time.perf_counter() - before
            yield item
            before = time.perf_counter()

    def total(self) -> float:
        return self._last - self._start


def flatten(prefix: str, records: list[RolloutRecord]) -> dict[str, Any]:
    """Statistics as metric paths; several tasks get theirs beside the total."""
    if not records:
        return {}
    summary = summarise(records)
    tasks = summary.pop("tasks", {})
    rows = {f"{prefix}/{name}": value for name, value in summary.items()}
    rows |= {f"{prefix}/return_mean/{task}": means["return_mean"] for task, means in tasks.items()}
    return {name: value for name, value in rows.items() if value is not None}


def _rates(run: TrainingRun, clock: Clock) -> dict[str, float]:
    offline = run.epoch <= run.config.rollout.offline_epochs
    steps = 0 if offline else run.steps_per_epoch * run.config.env.num_lanes
    updates = run.config.run.updates_per_epoch if run.learner.updates else 0
    return {
        "env_steps_per_second": steps / max(clock.laps["collect_seconds"], 1e-9),
        "updates_per_second": updates / max(clock.laps["learn_seconds"], 1e-9),
    }
