"""A resumable queue of one-thread runs: stop it, start it again, it goes on."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.live import Live
from rich.markup import escape

from amago.sweep.jobs import Command, Job, amago_command, parse_overrides, plan
from amago.sweep.progress import headline, live_table
from amago.sweep.queue import Outcome, Queue

__all__ = ["Job", "Outcome", "parse_overrides", "plan", "record_command", "run_jobs"]

_LOCK_NAME = ".sweep.lock"
_LOG_TAIL_LINES = 15
_PLAIN_INTERVAL_SECONDS = 60.0
_AGAIN = "the same command tries the failed runs again"
_NOT_AGAIN = "failed trials count; more --trials draw others"


def run_jobs(
    jobs: Sequence[Job],
    num_parallel: int,
    root: str | Path,
    *,
    command: Command = amago_command,
    devices: Sequence[str] = (),
    console: Console | None = None,
    poll_seconds: float = 0.5,
    grace_seconds: float = 30.0,
    feed: Callable[[Queue], bool] | None = None,
) -> Outcome:
    """Run all jobs that have no result yet, so many at a time, and report what failed.

    `feed` may add jobs and prune others between any two looks at the queue, and says whether
    more may come. A job sees one of the GPUs `devices` alone: the one that fewest others use.
    """
    if num_parallel < 1:
        raise ValueError(f"--jobs must be at least 1, got {num_parallel}; 2 suits a small machine")
    console = console or Console()
    with _lock(Path(root)) as handle, _signals() as received:
        queue = Queue(jobs, num_parallel, command, console, handle, devices)
        try:
            with _view(queue) as refresh:
                more = feed is not None and feed(queue)
                while (queue.pending or more) and not received:
                    queue.advance()
                    refresh()
                    more = feed is not None and feed(queue)
                    if queue.pending and not received:
                        time.sleep(poll_seconds)
        finally:
            # Nothing runs any more at a normal end; a signal or an error leaves children behind.
            if queue.children:
                try:
                    console.print(f"stopping {len(queue.children)} runs…", highlight=False)
                finally:  # nobody may listen any more, as with `amago sweep … | head`
                    queue.stop(grace_seconds, received)
    outcome = queue.outcome(received[0] if received else None)
    _say_end(outcome, queue, _AGAIN if feed is None else _NOT_AGAIN)
    return outcome


def record_command(root: str | Path, arguments: Sequence[str]) -> None:
    """Keep the command line in the sweep's command.txt, once, for those who repeat it."""
    path = Path(root) / "command.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    line = shlex.join(arguments)
    known = path.read_text().splitlines() if path.is_file() else []
    if line not in known:
        path.write_text("\n".join([*known, line]) + "\n")


@contextmanager
def _lock(root: Path) -> Iterator[int]:
    """Hold the root folder for one sweep and the runs that it started."""
    root.mkdir(parents=True, exist_ok=True)
    handle = os.open(root / _LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            # flock, not lockf: only this kind of lock is shared with the children.
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, 32, 0).decode(errors="replace").strip()
            raise ValueError(
                f"expected no other sweep on {root}, but process {owner} or a run that it started "
                "still works there; wait for it, stop it, or choose another folder"
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield handle
    finally:
        os.close(handle)


@contextmanager
def _signals() -> Iterator[list[int]]:
    """The signals SIGINT and SIGTERM as they come in, instead of an exception anywhere."""
    received: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        received.append(number)

    # Python lets the main thread alone set handlers; elsewhere the caller stops the sweep.
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    previous = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def _view(queue: Queue) -> Iterator[Callable[[], None]]:
    """A live table in a terminal, and a line per minute elsewhere."""
    jobs, console = queue.progress, queue.console
    if console.is_terminal:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            yield lambda: live.update(
                live_table(jobs, queue.num_parallel, time.monotonic()), refresh=True
            )
        return
    last_said = time.monotonic()

    def refresh() -> None:
        nonlocal last_said
        now = time.monotonic()
        if now - last_said >= _PLAIN_INTERVAL_SECONDS:
            last_said = now
            console.print(headline(jobs, queue.num_parallel, now), highlight=False)

    yield refresh


def _say_end(outcome: Outcome, queue: Queue, after_failures: str) -> None:
    console = queue.console
    for item in queue.progress:
        if item.state == "failed":
            what = f"{escape(queue.name(item.job))} ({escape(item.note)})"
            text = f"[bold red]failed[/]: {what}, end of {escape(str(item.job.log))}:"
            console.print(text, highlight=False, soft_wrap=True)
            console.print(escape(_log_tail(item.job.log)), highlight=False, soft_wrap=True)
    text = f"{len(outcome.done)} done, {len(outcome.failed)} failed, "
    text += f"{len(outcome.skipped)} were complete before"
    pruned = sum(item.state == "pruned" for item in queue.progress)
    text += f", {pruned} ended early" if pruned else ""
    if outcome.signal:
        text += "; stopped, the same command goes on from the last checkpoints"
    elif outcome.failed:
        text += f"; {after_failures}"
    console.print(f"sweep: {text}", highlight=False, soft_wrap=True)


def _log_tail(path: Path) -> str:
    if not path.is_file():
        return "(no log)"
    lines = path.read_text(errors="replace").splitlines()
    return "\n".join(lines[-_LOG_TAIL_LINES:])
