"""A run that is stopped, by a signal or by an error, keeps its last complete epoch."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from amago.training.header import go_on_command
from amago.training.run import TrainingRun

_LOG = logging.getLogger("amago")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Terminated(SystemExit):
    """SIGTERM arrived; a script that does not catch it ends with exit code 143."""

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """SIGINT and SIGTERM are exceptions within; a second signal ends the process at once.

    Python lets the main thread alone set handlers; elsewhere the caller decides what they do.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.getsignal(number) for number in _SIGNALS}
    # What is ignored stays so: a shell does that to SIGINT of jobs in the background.
    caught = [number for number in _SIGNALS if previous[number] is not signal.SIG_IGN]

    received = list[int]()

    def stop(number: int, _: FrameType | None) -> NoReturn:
        received.append(number)
        for each in caught:
            signal.signal(each, signal.SIG_DFL)
        raise _exception_of(number)

    for number in caught:
        signal.signal(number, stop)
    try:
        yield
    except Exception as error:
        if received:  # compiled code may replace the signal's exception by one of its own
            raise _exception_of(received[0]) from error
        raise
    finally:
        for number in caught:
            signal.signal(number, previous[number] or signal.SIG_DFL)


def _exception_of(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else Terminated()


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
