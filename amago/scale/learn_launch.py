"""Starting learner ranks as processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Protocol

import torch
import torch.distributed as dist

from amago.config import Config
from amago.scale.learn_group import Seat, open_store
from amago.training.cores import cores_to_learn

_GRACE_SECONDS = 10.0
_HOST = "127.0.0.1"


class Ranks(Protocol):
    """The ranks after the first, which this process is, wherever they are."""

    first: Seat
    store: dist.TCPStore
    """Where they meet."""

    def gone(self) -> bool:
        """Whether one of them has ended."""

    def lost(self) -> str:
        """Which of them have ended, and how."""

    def close(self) -> None:
        """Wait for them to end by themselves, which they do when the first rank is gone."""


class RankProcesses:
    """Ranks 1.. of a run, as child processes."""

    def __init__(self, config: Config) -> None:
        size = config.scale.learners
        threads = config.run.threads or max(1, cores_to_learn(config) // size)
        torch.set_num_threads(threads)
        self.store = open_store(_HOST)
        address = f"{_HOST}:{self.store.port}"
        self.first = Seat(0, size, 0, address)
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        self._processes = [
            # Ctrl-C reaches the first rank alone, which then ends the others in order.
            subprocess.Popen(
                [sys.executable, "-m", "amago.scale.learn_rank", str(rank), str(size), address],
                env=environment,
                start_new_session=True,
            )
            for rank in range(1, size)
        ]

    def gone(self) -> bool:
        return any(process.poll() is not None for process in self._processes)

    def lost(self) -> str:
        deadline = time.monotonic() + 2.0
        while time.monotonic() < deadline and not self.gone():
            time.sleep(0.05)
        ends = {rank: process.poll() for rank, process in enumerate(self._processes, start=1)}
        said = [f"learner {rank} {_end(code)}" for rank, code in ends.items() if code is not None]
        return "; ".join(said) or "a learner does not answer any more"

    def close(self) -> None:
        deadline = time.monotonic() + _GRACE_SECONDS
        for process in self._processes:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _end(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
