"""Starting learner ranks on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass

import torch

from amago.config import Config
from amago.scale.learn_group import LAUNCHED, Seat

_GRACE_SECONDS = 10.0


@dataclass
class Launched:
    """Ranks 1.. of a run, as processes of this machine."""

    processes: list[subprocess.Popen[bytes]]
    first: Seat
    """Of the process that launched them."""

    def lost(self) -> str:
        """Which of them have ended, and how."""
        deadline = time.monotonic() + 2.0
        while time.monotonic() < deadline and all(p.poll() is None for p in self.processes):
            time.sleep(0.05)
        ends = {rank: p.poll() for rank, p in enumerate(self.processes, start=1)}
        said = [f"learner {rank} {_end(code)}" for rank, code in ends.items() if code is not None]
        return "; ".join(said) or "a learner does not answer any more"

    def close(self) -> None:
        """Wait for them to end by themselves, which they do when the first rank is gone."""
        deadline = time.monotonic() + _GRACE_SECONDS
        for process in self.processes:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def launch(config: Config) -> Launched:
    """Start the ranks after the first, which this process becomes."""
    size = config.scale.learners
    threads = config.run.threads or max(1, (os.cpu_count() or 1) // size)
    torch.set_num_threads(threads)
    port = str(_free_port())
    processes = []
    for rank in range(1, size):
        values = (str(rank), str(size), "127.0.0.1", port)
        environment = {**os.environ, **dict(zip(LAUNCHED, values, strict=True))}
        environment |= {"LOCAL_RANK": str(rank), "OMP_NUM_THREADS": str(threads)}
        command = [sys.executable, "-m", "amago.scale.learn_rank"]
        # Ctrl-C reaches the first rank alone, which then ends the others in order.
        processes.append(subprocess.Popen(command, env=environment, start_new_session=True))
    return Launched(processes, Seat(0, size, 0, f"tcp://127.0.0.1:{port}"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _end(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
