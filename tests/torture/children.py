"""Work in forks of this process: killed at a time or at a file operation, watched, reaped."""

from __future__ import annotations

import contextlib
import ctypes
import io
import logging
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import torch._dynamo
import torch.utils.tensorboard  # noqa: F401  imported once here, not by every child
from test_run_helpers import die

import amago.cli.command  # noqa: F401  another user may not read it later
from amago.cli import main as amago_main
from amago.replay.store import TrajectoryStore
from amago.training.logger import _JsonLines
from amago.training.view import Silent

_CALLS = ("fsync", "rename", "replace", "unlink", "open", "rmdir", "mkdir", "ftruncate", "write")
_STORE = ("append", "append_protected", "evict", "sync")
_SUBREAPER = 36
_PATIENCE_SECONDS = 600.0
Interfere = Callable[[], None]


class Board:
    """Memory that a forked child shares with this process: what it has done so far."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 24)

    def _get(self, at: int, kind: str) -> Any:
        return struct.unpack_from(kind, self._memory, at)[0]

    def count(self) -> int:
        """Note one more file operation; how many came before it."""
        before = self.operations
        struct.pack_into("q", self._memory, 0, before + 1)
        return before

    def note_begin(self) -> None:
        """The run is there, whether made or restored; epochs follow."""
        struct.pack_into("qd", self._memory, 8, self.operations, time.monotonic())

    @property
    def operations(self) -> int:
        return int(self._get(0, "q"))

    @property
    def operations_to_begin(self) -> int:
        """0 until it has begun."""
        return int(self._get(8, "q"))

    @property
    def begun(self) -> float:
        """When, on the system's monotonic clock; 0 if it has not."""
        return float(self._get(16, "d"))


class Watched(Silent):
    """A view that notes on the board that the run has begun."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def begin(self, folder: Path) -> None:
        self._board.note_begin()


def at_operation(board: Board, number: int | None, interfere: Interfere = die) -> None:
    """Count this process's file operations; before one of them, and all later ones, interfere.

    Files that are written as a whole, and rows of metrics, are half written by then.
    """

    def due() -> bool:
        return board.count() >= (number if number is not None else 1 << 62)

    def wrapped(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if due():
                interfere()
            return original(*arguments, **named)

        return call

    for name in _CALLS:
        setattr(os, name, wrapped(getattr(os, name)))
    for name in _STORE:
        setattr(TrajectoryStore, name, wrapped(getattr(TrajectoryStore, name)))
    write_bytes, write_row, opened = Path.write_bytes, _JsonLines.write, io.open

    def half_bytes(path: Path, data: Any) -> int:
        if due():
            write_bytes(path, bytes(data)[: len(data) // 2])
            interfere()
        return write_bytes(path, data)

    def half_row(self: _JsonLines, row: dict[str, Any]) -> None:
        if due():
            self._file.write(b'{"epoch": 1, "ro')
            self._file.flush()
            interfere()
        write_row(self, row)

    def open_to_write(file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        if set(mode) & set("wax+") and due():
            interfere()
        return opened(file, mode, *arguments, **named)

    Path.write_bytes, _JsonLines.write = half_bytes, half_row  # type: ignore[method-assign,assignment]
    io.open = open_to_write  # type: ignore[assignment]


def raising(number: int) -> Interfere:
    """What a system does that refuses to write: an OSError of that number."""

    def interfere() -> NoReturn:
        raise OSError(number, os.strerror(number), "a file of the run")

    return interfere


class Child:
    """A fork of this process that does some work."""

    def __init__(self, work: Callable[..., Any], *arguments: Any, log: Path | None = None) -> None:
        self.started, self._code = time.monotonic(), None
        self.pid = os.fork()
        if self.pid == 0:
            # Shells let background jobs ignore SIGINT; the campaign has a handler of its own.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _redirect(log)
            try:
                work(*arguments)
                os._exit(0)
            except SystemExit as end:
                os._exit(end.code if isinstance(end.code, int) else 1)
            except KeyboardInterrupt:
                os._exit(128 + signal.SIGINT)
            except BaseException:
                os._exit(1)

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def alive(self) -> bool:
        if self._code is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if done else None
        return self._code is None

    def wait(self) -> int:
        """The exit code, or minus the signal that killed it; who hangs is killed at last."""
        return self.kill_after(_PATIENCE_SECONDS)

    def kill_after(self, seconds: float) -> int:
        """Its exit code when it is killed after that time, or ends before."""
        deadline = self.started + seconds
        while self.alive():
            if time.monotonic() >= deadline:
                self.send(signal.SIGKILL)
            time.sleep(0.005)
        assert self._code is not None
        return self._code


def _redirect(log: Path | None) -> None:
    logging.getLogger().handlers.clear()
    target = os.devnull if log is None else log
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    # pytest has put something of its own in their place.
    sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)


def command(*arguments: str | Path) -> None:
    """A command line of amago; ends this process with its exit code."""
    try:
        amago_main([str(argument) for argument in arguments])
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)


def adopt_orphans() -> None:
    """Let children of killed children become children of this process, where they are seen."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def orphans(seconds: float) -> list[int]:
    """Processes that a killed child has left behind and that do not end within a time."""
    deadline = time.monotonic() + seconds
    while left := descendants("self"):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        if time.monotonic() > deadline:
            return left
        time.sleep(0.01)
    return []


def descendants(pid: int | str) -> list[int]:
    """The processes that a process has started itself; none if it is gone."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(each) for task in tasks for each in (task / "children").read_text().split()]
    except OSError:
        return []
