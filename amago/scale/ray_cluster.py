"""Connecting to a Ray cluster, or starting one on this machine."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

_ENVIRONMENT = {
    # Otherwise Ray's workers get what all other processes leave them (nice 15).
    "RAY_worker_niceness": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Of a cluster that is started here, unless the user has set them."""


class Cluster:
    """A connection that is given back by `close`, unless the caller had it before."""

    def __init__(self, address: str, num_processes: int) -> None:
        """`address` is auto, HOST:PORT, or local: a cluster of this machine that ends with this
        process and lets that many processes share its cores."""
        with _own_signals():
            self.ray = _import_ray()
            self._connected_here = not self.ray.is_initialized()
            if self._connected_here:
                self._connect(address, num_processes)

    def close(self) -> None:
        if self._connected_here:
            self.ray.shutdown()

    def _connect(self, address: str, num_processes: int) -> None:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        if address == "local":
            cores = max(os.cpu_count() or 1, num_processes)
            options |= {"num_cpus": cores, "include_dashboard": False}
        try:
            self.ray.init(address=address, **options)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            raise ValueError(
                f"--scale.address {address}: no Ray cluster answers there ({error}); start one "
                "with `ray start --head`, or take --scale.address local"
            ) from error


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ValueError(
            "--scale.address needs Ray, which is not installed: "
            "pip install -c constraints.txt 'amago[ray]'"
        ) from error
    return ray


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Ray sets a handler of SIGTERM; a run that is told to stop saves its last epoch first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
