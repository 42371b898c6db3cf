"""What a request to stop is, for all parts that catch the errors of others."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_Handler = Callable[[int, FrameType | None], NoReturn]


class Terminated(SystemExit):
    """SIGTERM arrived; a script that does not catch it ends with exit code 143.

    Whoever catches the SystemExit of an environment lets this one pass.
    """

    def __init__(self) -> None:
        super().__init__(128 + signal.SIGTERM)


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """SIGINT and SIGTERM are exceptions within; a second signal ends the process at once."""
    received = list[int]()

    def stop(number: int, _: FrameType | None) -> NoReturn:
        received.append(number)
        for each in _SIGNALS:
            if signal.getsignal(each) is not signal.SIG_IGN:
                signal.signal(each, signal.SIG_DFL)
        raise _exception_of(number)

    with _handled(stop):
        try:
            yield
        except Exception as error:
            if received:  # compiled code may replace the signal's exception by one of its own
                raise _exception_of(received[0]) from error
            raise


def ending_at_once() -> contextlib.AbstractContextManager[None]:
    """A signal ends the process with its exit code: nothing is begun yet."""

    def end(number: int, _: FrameType | None) -> NoReturn:
        print("stopped before anything was begun", file=sys.stderr, flush=True)
        os._exit(128 + number)

    return _handled(end)


@contextlib.contextmanager
def _handled(handler: _Handler) -> Iterator[None]:
    """Another handler for both signals.

    What is ignored stays so: a shell does that to SIGINT of jobs in the background. Python lets
    the main thread alone set handlers; elsewhere the caller decides what signals do.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    known = {number: signal.getsignal(number) for number in _SIGNALS}
    previous = {n: before for n, before in known.items() if before is not signal.SIG_IGN}
    for number in previous:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before or signal.SIG_DFL)


def _exception_of(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else Terminated()
