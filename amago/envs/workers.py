"""Lanes spread over processes, one round trip per step for all of them."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

import cloudpickle  # type: ignore[import-untyped]
import numpy as np

from amago.envs.joining import Joiner
from amago.envs.lanes import checked_episodes, furthest, read_only
from amago.envs.worker_process import Factory, serve
from amago.types import Array, Curriculum, Step, Timestep

_LOG = logging.getLogger("amago")


class WorkerVector:
    """N lanes in worker processes, each holding a chunk of them in any other vector.

    Processes are never forked from this one, which may have torch's threads running, so a
    script that uses workers needs the usual `if __name__ == "__main__":`.
    """

    def __init__(
        self,
        factory: Factory,
        num_lanes: int,
        num_workers: int,
        *,
        context: str | None = None,
        timeout: float = 600.0,
    ) -> None:
        """A worker that does not answer for `timeout` seconds is an error."""
        if num_lanes < 1 or num_workers < 1:
            raise ValueError(
                f"expected at least 1 lane and 1 worker, got {num_lanes} and {num_workers}"
            )
        self.num_lanes, self._timeout = num_lanes, timeout
        self._episodes = np.zeros(num_lanes, np.int64)
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        chunks = np.array_split(np.arange(num_lanes), min(num_workers, num_lanes))
        self._bounds = [(int(chunk[0]), len(chunk)) for chunk in chunks]
        self._joiner = Joiner([first_lane for first_lane, _ in self._bounds])
        pickled = cloudpickle.dumps(factory)
        try:
            for first_lane, size in self._bounds:
                self._start(_context(context), pickled, first_lane, size)
            hellos = self._receive()
        except BaseException:
            self.close()
            raise
        self.spec = hellos[0][0]
        self.tasks: tuple[str, ...] = sum((tasks for _, tasks, _ in hellos), ())
        self.horizons: tuple[int | None, ...] = sum((horizons for *_, horizons in hellos), ())

    @property
    def episodes(self) -> Array:
        """Rollouts begun per lane [N], read-only; assign a whole array to resume."""
        return read_only(self._episodes)

    @episodes.setter
    def episodes(self, episodes: Array) -> None:
        self._episodes = checked_episodes(episodes, self.num_lanes)
        self._ask("episodes", self._chunked(self._episodes))

    @property
    def restarts(self) -> int:
        return sum(self._ask("restarts"))

    @property
    def curriculum(self) -> Curriculum:
        return furthest(self._ask("curriculum"))

    @curriculum.setter
    def curriculum(self, curriculum: Curriculum) -> None:
        self._ask("curriculum", [(curriculum,)] * len(self._pipes))

    def reset(self) -> Timestep:
        rows = self._joiner.rows(self._ask("reset"))
        self._episodes += 1
        return rows

    def step(self, action: Array, idle: Array | None = None) -> Step:
        if len(action) != self.num_lanes:
            raise ValueError(f"expected {self.num_lanes} actions, one a lane, got {len(action)}")
        idle = np.zeros(self.num_lanes, np.bool_) if idle is None else idle
        steps: list[Step] = self._ask("step", self._chunked(np.asarray(action), idle))
        step = self._joiner.step(steps)
        self._episodes += (step.rows.time == 0) & ~idle
        return step

    def render(self) -> Array:
        if not self._pipes:
            raise RuntimeError("the workers are closed; make a new vector")
        self._send(0, ("render", ()))
        frame: Array = self._receive_one(0)
        return frame

    def close(self) -> None:
        """End all workers: a closed pipe asks them, then they are made to."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(2.0)
            for stop in (process.terminate, process.kill):
                if process.is_alive():
                    stop()
                    process.join(2.0)
        self._pipes, self._processes = [], []

    def _start(self, context: Any, pickled: bytes, first_lane: int, size: int) -> None:
        ours, theirs = context.Pipe()
        process = context.Process(
            target=serve, args=(theirs, pickled, first_lane, size), daemon=True
        )
        self._pipes.append(ours)
        try:
            process.start()
        finally:
            theirs.close()
        self._processes.append(process)

    def _chunked(self, *columns: Array) -> list[tuple[Any, ...]]:
        return [
            tuple(values[first : first + size] for values in columns)
            for first, size in self._bounds
        ]

    def _ask(self, method: str, arguments: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        """Send to all, then receive from all, so that the workers work at the same time."""
        if not self._pipes:
            raise RuntimeError("the workers are closed; make a new vector")
        try:
            for worker in range(len(self._pipes)):
                self._send(worker, (method, arguments[worker] if arguments else ()))
            return self._receive()
        except BaseException:
            # Interrupted between question and answer, later answers would be to the wrong question.
            self.close()
            raise

    def _send(self, worker: int, message: tuple[str, tuple[Any, ...]]) -> None:
        try:
            self._pipes[worker].send(message)
        except OSError:
            self._fail(worker)

    def _receive(self) -> list[Any]:
        return [self._receive_one(worker) for worker in range(len(self._pipes))]

    def _receive_one(self, worker: int) -> Any:
        pipe, process = self._pipes[worker], self._processes[worker]
        try:
            ready = wait([pipe, process.sentinel], self._timeout / 2)
            if not ready:
                _LOG.warning(f"{self._where(worker)} is silent for {self._timeout / 2:g} seconds")
                ready = wait([pipe, process.sentinel], self._timeout / 2)
            if not ready:
                self._hang(worker)
            if pipe not in ready and not pipe.poll():
                self._fail(worker)
            report, result = pipe.recv()
        except (EOFError, OSError):
            self._fail(worker)
        if report:
            self._fail(worker, report)
        return result

    def _where(self, worker: int) -> str:
        first, size = self._bounds[worker]
        return f"environment worker {worker} (lanes {first}..{first + size - 1})"

    def _hang(self, worker: int) -> NoReturn:
        where = self._where(worker)
        self.close()
        raise RuntimeError(
            f"{where} did not answer for {self._timeout:g} seconds: an environment hangs, or a "
            "step takes longer; find it with --env.num-workers 0, or raise --env.timeout-seconds"
        )

    def _fail(self, worker: int, report: str = "") -> NoReturn:
        process = self._processes[worker]
        if not report:
            process.join(1.0)
        where = self._where(worker)
        self.close()
        if report:
            raise RuntimeError(f"{where} raised an exception:\n{report}")
        raise RuntimeError(
            f"{where} died with exit code {process.exitcode}: it was killed (out of memory?) or "
            "crashed in native code; try --env.num-workers 0 to see it happen in this process"
        )


def _context(name: str | None) -> Any:
    if name is None:
        name = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    if name == "fork":
        raise ValueError(
            "expected the context 'forkserver' or 'spawn', got 'fork', which would copy torch's "
            "locks in whatever state they are"
        )
    context = multiprocessing.get_context(name)
    if name == "forkserver":
        context.set_forkserver_preload([serve.__module__, "gymnasium"])
    return context
