"""Sweeps that are killed: the queue, or one of its runs, or both."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from rich.console import Console
from test_run_helpers import differing

from amago.sweep.jobs import Job, Step
from amago.sweep.sweep import run_jobs
from torture.children import Child, descendants, orphans
from torture.kills import Tally
from torture.runs import go_on

KIND = "sweep"
_RUNS = ("GRU, continuous", "multi-binary")
_PATIENCE_SECONDS = 600.0


def kill_sweeps(folder: Path, wholes: dict[str, Path], kills: int, rng: random.Random,
                tally: Tally) -> None:  # fmt: skip
    """So many kills of sweeps and their runs; every run has to be exact in the end."""
    if not kills:
        return
    root = folder / "sweep"
    start = time.monotonic()
    code = Child(_sweep, root, log=folder / "sweep.log").wait()
    seconds = time.monotonic() - start
    if code:
        said = (folder / "sweep.log").read_text()
        raise RuntimeError(f"the undisturbed sweep ended with {code}:\n{said}")
    while tally.kills < kills:
        shutil.rmtree(root, ignore_errors=True)
        wanted = min(tally.kills + 3, kills)
        while tally.kills < wanted:
            _attempt(root, seconds, rng, tally)
            if (root / "complete").exists():
                break
        code = Child(_sweep, root, log=folder / "sweep.log").wait()
        for job in _jobs(root):
            tally.runs += 1
            wrong = [f"exit code {code}"] if code else differing(job.run_dir, wholes[job.preset])
            tally.exact += not wrong
            if wrong:
                tally.failures.append(f"a run of a killed sweep differs in {wrong} ({root})")


def runs() -> tuple[str, ...]:
    """The kinds of runs that the sweeps are made of."""
    return _RUNS


def _attempt(root: Path, seconds: float, rng: random.Random, tally: Tally) -> None:
    """Start the sweep, and kill something of it within the time that a whole one takes."""
    resumed = any((job.run_dir / "config.json").exists() for job in _jobs(root))
    child = Child(_sweep, root, log=root.parent / "sweep.log")
    time.sleep(rng.uniform(0.1, 0.9 * seconds))
    victims = descendants(child.pid)
    child_only = rng.random() < 0.4
    if child_only and victims:
        _kill(rng.choice(victims))
        killed = True
        child.wait()
    else:
        child.send(signal.SIGKILL)
        killed = child.wait() == -signal.SIGKILL
        if rng.random() < 0.6:
            for pid in victims:
                _kill(pid)
    left = orphans(_PATIENCE_SECONDS)  # runs that outlive their sweep come to their own end
    if left:
        tally.failures.append(f"runs {left} of a killed sweep do not end")
    if killed:
        tally.kills += 1
        tally.in_resumed_runs += resumed
        tally.while_restoring += resumed and not victims


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _sweep(root: Path) -> None:
    outcome = run_jobs(
        _jobs(root), 2, root, command=_run_command, console=Console(file=io.StringIO()),
        poll_seconds=0.05,
    )  # fmt: skip
    if outcome.exit_code:
        raise RuntimeError("a run has failed")
    (root / "complete").touch()


def _jobs(root: Path) -> list[Job]:
    return [Job(kind, 7, {}, root / f"{number}" / "seed-7") for number, kind in enumerate(_RUNS)]


def _run_command(job: Job, step: Step) -> list[str]:
    """As `amago_command`, without the drawing of curves."""
    return [sys.executable, "-m", "torture.sweeps", job.preset, str(job.run_dir)]


if __name__ == "__main__":
    go_on(sys.argv[1], Path(sys.argv[2]))
