"""A run that is stopped, by a signal or by an error, keeps its last complete epoch."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator

from amago.saved.header import go_on_command
from amago.stopping import Terminated
from amago.training.run import TrainingRun

_LOG = logging.getLogger("amago")


@contextlib.contextmanager
def saving(run: TrainingRun) -> Iterator[None]:
    """Whatever ends the run early: save its last complete epoch and say how to go on."""
    try:
        yield
    except BaseException as error:
        stopped = isinstance(error, KeyboardInterrupt | Terminated)
        with contextlib.nullcontext() if stopped else _undisturbed():
            _LOG.warning(_save(run))
        raise


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore SIGTERM: torchrun sends it to all ranks as soon as one of them has failed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _save(run: TrainingRun) -> str:
    failure = ""
    try:
        epoch = run.save_complete()
    except Exception as error:  # such as the full disk that has ended the run
        epoch, failure = run.saved_epoch, f" (saving a later one failed: {error})"
    go_on = go_on_command(run.folder)
    if not epoch:
        return f"stopped before an epoch was complete{failure}; begin again with: {go_on}"
    return f"stopped; the checkpoint of epoch {epoch} is kept{failure}; go on with: {go_on}"
