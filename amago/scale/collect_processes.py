"""Collectors as processes beside the learner, one pipe each."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import pickle
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from amago.child import reporting_to
from amago.scale.collect_fleet import Event, Failed, Lost, Played, Ready
from amago.scale.collect_weights import Weights
from amago.scale.collector import Blueprint, Collector, LaneShare

_NO_WEIGHTS = b""


@dataclass
class _Process:
    pipe: Connection
    process: Any
    version: int = -1
    """Of the weights that it was last sent."""


class ProcessFleet:
    """Collectors of this machine. Processes are never forked from this one, which may have
    torch's threads running."""

    def __init__(self, blueprint: Blueprint) -> None:
        self._pickled = cloudpickle.dumps(blueprint)
        # Daemons may have no children, and environments in workers are children.
        self._daemon = not blueprint.config.env.num_workers
        methods = multiprocessing.get_all_start_methods()
        name = "forkserver" if "forkserver" in methods else "spawn"
        self._context: Any = multiprocessing.get_context(name)
        self._numbers = itertools.count()
        self._collectors: dict[int, _Process] = {}
        self._weights, self._version = _NO_WEIGHTS, -1

    def add(self) -> int:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=_serve, args=(theirs, self._pickled), daemon=self._daemon
        )
        try:
            process.start()
        finally:
            theirs.close()
        number = next(self._numbers)
        self._collectors[number] = _Process(ours, process)
        return number

    def publish(self, weights: Weights) -> None:
        self._weights, self._version = pickle.dumps(weights, protocol=5), weights.version

    def send(self, collector: int, share: LaneShare) -> None:
        known = self._collectors[collector]
        new = known.version != self._version
        with contextlib.suppress(OSError):  # it died; the next poll says so
            known.pipe.send(share)
            known.pipe.send_bytes(self._weights if new else _NO_WEIGHTS)
        known.version = self._version

    def poll(self, timeout: float) -> list[Event]:
        pipes = {known.pipe: number for number, known in self._collectors.items()}
        return [self._receive(pipes[pipe]) for pipe in wait(list(pipes), timeout)]  # type: ignore[index]

    def remove(self, collector: int) -> None:
        known = self._collectors.pop(collector)
        known.pipe.close()
        known.process.kill()
        known.process.join()

    def close(self) -> None:
        """A closed pipe asks them to end, then they are made to."""
        for known in self._collectors.values():
            known.pipe.close()
        for known in self._collectors.values():
            known.process.join(0.5)
            known.process.kill()
            known.process.join()
        self._collectors = {}

    def _receive(self, number: int) -> Event:
        known = self._collectors[number]
        try:
            report, harvest = known.pipe.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            known.process.join(1.0)
            code = known.process.exitcode
            self.remove(number)
            return Lost(number, f"exit code {code}")
        if report is not None:
            self.remove(number)
            return Failed(number, report)
        return Ready(number) if harvest is None else Played(number, harvest)


def _serve(pipe: Connection, pickled: bytes) -> None:
    """The life of a collector's process: play until the other end of the pipe is closed."""
    with contextlib.ExitStack() as opened, reporting_to(pipe):
        collector = Collector(cloudpickle.loads(pickled))
        opened.callback(collector.close)
        pipe.send((None, None))
        while True:
            share = pipe.recv()
            weights = pipe.recv_bytes()
            given = None if weights == _NO_WEIGHTS else pickle.loads(weights)
            pipe.send((None, collector.collect(share, given)))
