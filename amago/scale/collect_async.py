"""Asynchronous collecting: collectors play and a thread stores while the learner learns."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass

import numpy as np

from amago.envs.joint import share_out
from amago.rollout.stats import RolloutRecord
from amago.scale.collect_counters import Counters
from amago.scale.collect_dispatch import Dispatch
from amago.scale.collect_ledger import Ledger
from amago.scale.collect_weights import Weights, take
from amago.scale.collector import Harvest
from amago.training.run import TrainingRun

_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class _Stored:
    """A harvest whose trajectories are in the replay."""

    num_lanes: int
    num_steps: int
    rollouts: list[RolloutRecord]
    lag: int
    """Updates that its weights were behind the learner's when it was stored."""
    window: tuple[int, int]
    """The replay's window with it."""


class AsyncCollection:
    """`collect` waits until the next epoch may be learned from; meanwhile, and while it is being
    learned from, the thread `amago-ingest` hands out shares and stores harvests."""

    def __init__(self, dispatch: Dispatch, run: TrainingRun, num_places: int) -> None:
        settings = run.config
        self._offline = settings.rollout.offline_epochs
        self._dispatch, self._run = dispatch, run
        self._places = share_out(num_places, run.env.num_lanes)
        self._ledger = Ledger(
            run.env.num_lanes,
            settings.run.epochs - self._offline,
            settings.scale.max_lag,
            settings.run.updates_per_epoch,
        )
        self._counters = Counters(run)
        self._shares = dict.fromkeys(self._places, 0)
        self._busy: set[range] = set()
        self._stored: deque[_Stored] = deque()
        self._weights: Weights | None = None
        self._version = -1
        self._error: BaseException | None = None
        self._timing: dict[str, float] = {}
        self._last = time.perf_counter()
        self._changed, self._stop = threading.Condition(), threading.Event()
        self._begin()
        self._thread = threading.Thread(target=self._work, name="amago-ingest", daemon=True)
        self._thread.start()

    def collect(self, run: TrainingRun) -> tuple[list[RolloutRecord], int]:
        weights = take(run.agent, run.learner.updates)
        ledger = self._ledger
        with self._changed:
            ledger.epoch = run.epoch + 1 - self._offline
            self._weights = weights
            self._changed.wait_for(lambda: self._error is not None or self._may_learn(weights))
            if self._error is not None:
                raise RuntimeError(str(self._error)) from self._error
            stored = self._count(run)
            self._counters.give_to(run)
        steps = sum(item.num_steps for item in stored)
        self._note(stored, steps)
        return [rollout for item in stored for rollout in item.rollouts], steps

    def timing(self) -> dict[str, float]:
        return self._timing

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._dispatch.fleet.close()

    def _may_learn(self, weights: Weights) -> bool:
        # The next share may be handed out with the weights that were published last, so they
        # count as being played with.
        oldest = self._dispatch.oldest
        oldest = self._version if oldest is None else min(oldest, self._version)
        return self._ledger.may_learn(weights.version, oldest)

    def _count(self, run: TrainingRun) -> list[_Stored]:
        """Take the harvests that belong to this epoch; later ones wait for theirs."""
        counted: list[_Stored] = []
        assert run.collected is not None
        while self._stored and run.collected < self._ledger.epoch * self._ledger.num_lanes:
            item = self._stored.popleft()
            run.collected += item.num_lanes
            run.window = item.window
            counted.append(item)
        return counted

    def _note(self, stored: list[_Stored], steps: int) -> None:
        now = time.perf_counter()
        self._timing = {
            "collectors": self._dispatch.num_collectors,
            "collectors_lost": self._dispatch.replaced,
            "env_steps_per_second": steps / max(now - self._last, 1e-9),
        }
        if stored:
            lags = [item.lag for item in stored]
            self._timing |= {"lag_mean": float(np.mean(lags)), "lag_max": max(lags)}
        self._last = now

    def _begin(self) -> None:
        """Count from what is in the replay on."""
        run, ledger = self._run, self._ledger
        if run.collected is None:
            run.collected = max(run.epoch - self._offline, 0) * ledger.num_lanes
        run.window = run.store.window
        ledger.collected = ledger.issued = run.collected

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                with self._changed:
                    self._publish()
                    self._issue()
                for harvest in self._dispatch.step(_POLL_SECONDS):
                    self._store(harvest)
                with self._changed:
                    self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _publish(self) -> None:
        if self._weights is not None and self._weights.version != self._version:
            self._dispatch.publish(self._weights)
            self._version = self._weights.version

    def _issue(self) -> None:
        """Shares for the collectors that wait, those places first that have played least."""
        if self._version < 0:
            return
        for lanes in sorted(set(self._places) - self._busy, key=lambda p: (self._shares[p], p[0])):
            if self._dispatch.num_spare < 1 or not self._ledger.may_issue(lanes):
                return
            # Of all shares of a lane, the number of rollouts before it is a name of its own.
            self._dispatch.put(self._counters.share(lanes, int(self._counters.episodes[lanes[0]])))
            self._busy.add(lanes)
            self._ledger.issued += len(lanes)

    def _store(self, harvest: Harvest) -> None:
        run, lanes = self._run, harvest.share.lanes
        with self._changed:
            run.store.append_records(harvest.records)
            self._counters.add(harvest)
            self._busy.discard(lanes)
            self._shares[lanes] += 1
            self._ledger.collected += len(lanes)
            lag = run.learner.updates - harvest.version
            self._stored.append(
                _Stored(len(lanes), harvest.num_steps, harvest.rollouts, lag, run.store.window)
            )
