"""Calls of an environment that take too long are named, then interrupted."""

from __future__ import annotations

import ctypes
import logging
import signal
import sys
import threading
import time
import weakref
from types import FrameType
from typing import Protocol

_LOG = logging.getLogger("amago")
_LOOKS = 8
"""How often the thread looks at the clock within the time that a call may take."""


class _Watched(Protocol):
    """What is called: it knows where it is."""

    @property
    def place(self) -> object: ...


class Watchdog:
    """A thread that looks after the calls of one vector of lanes.

    After half of `seconds` a call is named in a warning; after all of them a TimeoutError is raised
    inside of it, so that its traceback shows what it waits for. Python can only interrupt code that
    comes back to it: a call that is stuck in native code is named again and again.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.inside: _Watched | None = None
        """What is being called now."""
        self.since = 0.0
        self.overdue = False
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def enter(self, watched: _Watched) -> None:
        """A call begins; the one before it has ended."""
        self.inside, self.since = watched, time.monotonic()

    def leave(self) -> None:
        self.inside, self.overdue = None, False

    def start(self) -> None:
        """Look after the calls of the current thread from now on."""
        if self._thread is not None and self._thread.is_alive():
            return
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:
            signal.signal(signal.SIGALRM, _interrupt)
        arguments = (weakref.ref(self), self._closed, threading.get_ident(), self.seconds / _LOOKS)
        self._thread = threading.Thread(target=_look_after, args=arguments, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()

    def look(self, thread: int, named: float) -> float:
        """Name or interrupt a call that takes too long; when the last one that was named began."""
        inside, since = self.inside, self.since
        taken = time.monotonic() - since
        if inside is None or taken < self.seconds / 2:
            return named
        if taken >= self.seconds:
            self.overdue = True
            _LOG.warning(f"the environment does not answer, and is interrupted: {inside.place}")
            _raise_in(thread)
            self.since = time.monotonic()  # again after as long, should it not have helped
        elif since != named:
            _LOG.warning(
                f"the environment is silent for {taken:.3g} seconds: {inside.place}; "
                f"--env.timeout-seconds is {self.seconds:g}"
            )
        return since


_overdue: weakref.WeakSet[Watchdog] = weakref.WeakSet()


def _look_after(
    watchdog: weakref.ref[Watchdog], closed: threading.Event, thread: int, pause: float
) -> None:
    """The life of the thread; it ends with the vector."""
    named = 0.0
    while not closed.wait(pause):
        watched = watchdog()
        if watched is None:
            return
        _overdue.add(watched)
        named = watched.look(thread, named)
        del watched


def _raise_in(thread: int) -> None:
    """A TimeoutError in another thread: by a signal, which also ends waiting, or at its next
    step."""
    if thread == threading.main_thread().ident and signal.getsignal(signal.SIGALRM) is _interrupt:
        signal.pthread_kill(thread, signal.SIGALRM)
    else:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread), ctypes.py_object(TimeoutError)
        )


def _interrupt(_: int, __: FrameType | None) -> None:
    """The handler of SIGALRM: the call may have come back meanwhile, or be looked at by a person
    with a debugger."""
    late = [each for each in _overdue if each.overdue and each.inside is not None]
    if late and sys.gettrace() is None:
        late[0].overdue = False
        raise TimeoutError(
            f"it did not answer for {late[0].seconds:g} seconds; where a step takes longer, raise "
            "--env.timeout-seconds"
        )
