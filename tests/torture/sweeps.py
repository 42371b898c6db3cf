"""Sweeps that are killed: the queue, its runs, or all of them."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from test_run_helpers import die, differing

from amago.sweep.jobs import Job, Step
from amago.sweep.sweep import run_jobs
from amago.training.view import Silent
from torture.children import Board, Child, at_operation, orphans
from torture.kills import Rhythm, Tally
from torture.runs import go_on

KIND = "sweep"
RUNS = ("GRU, continuous", "multi-binary")
"""The kinds of runs that the sweeps are made of."""
_KILLS_PER_SWEEP = (5, 8)
_AT_FILES = 0.6
_AIMED_AT_RESUME = 0.7
_KILLED_FROM_OUTSIDE = 0.7
"""Of the runs that do not die at a file operation."""
_QUEUE_KILLED = 0.5
_PATIENCE_SECONDS = 600.0


def kill_sweeps(folder: Path, wholes: Mapping[str, tuple[Path, Rhythm]], kills: int,
                rng: random.Random, tally: Tally) -> None:  # fmt: skip
    """So many kills of sweeps and their runs; every run has to be exact in the end."""
    if not kills:
        return
    root, start = folder / "sweep", time.monotonic()
    _ends_well(root, folder / "sweep.log")
    seconds = time.monotonic() - start
    while tally.kills < kills:
        shutil.rmtree(root)
        wanted = min(tally.kills + rng.randint(*_KILLS_PER_SWEEP), kills)
        while tally.kills < wanted and not (root / "complete").exists():
            _attempt(root, {kind: wholes[kind][1] for kind in RUNS}, seconds, rng, tally, wanted)
        for job in _jobs(root):
            _Marks(job).clear()
        code = Child(_sweep, root, {}, log=folder / "sweep.log").wait()
        for job in _jobs(root):
            tally.runs += 1
            whole = wholes[job.preset][0]
            wrong = [f"exit code {code}"] if code else differing(job.run_dir, whole)
            tally.exact += not wrong
            if wrong:
                tally.failures.append(f"a run of a killed sweep differs in {wrong} ({root})")


def _ends_well(root: Path, log: Path) -> None:
    code = Child(_sweep, root, {}, log=log).wait()
    if code:
        raise RuntimeError(f"the undisturbed sweep ended with {code}:\n{log.read_text()}")


@dataclass(frozen=True)
class _Marks:
    """Files by which a run of a sweep tells how far it came."""

    job: Job

    def _at(self, word: str) -> Path:
        return self.job.run_dir.with_name(f"{self.job.run_dir.name}.{word}")

    @property
    def pid(self) -> Path:
        return self._at("pid")

    @property
    def begun(self) -> Path:
        """The run is there, whether made or restored."""
        return self._at("begun")

    @property
    def died(self) -> Path:
        """It is about to kill itself at a file operation."""
        return self._at("died")

    def clear(self) -> None:
        for path in (self.pid, self.begun, self.died):
            path.unlink(missing_ok=True)


def _attempt(root: Path, rhythms: Mapping[str, Rhythm], seconds: float, rng: random.Random,
             tally: Tally, wanted: int) -> None:  # fmt: skip
    """Start the sweep, and kill of it what chance says within the time that a whole one takes."""
    jobs = [job for job in _jobs(root) if not (job.run_dir / "result.json").exists()]
    resumed = {job.run_dir: (job.run_dir / "config.json").exists() for job in jobs}
    numbers = dict[Path, int]()
    for job in jobs:
        _Marks(job).clear()
        if len(numbers) < wanted - tally.kills and rng.random() < _AT_FILES:
            rhythm, at_resume = rhythms[job.preset], rng.random() < _AIMED_AT_RESUME
            restoring = resumed[job.run_dir] and at_resume
            most = rhythm.restore_operations if restoring else rhythm.operations
            numbers[job.run_dir] = rng.randrange(max(most, 1))
    left = wanted - tally.kills - len(numbers)
    child = Child(_sweep, root, numbers, log=root.parent / "sweep.log")
    others = [job for job in jobs if job.run_dir not in numbers]
    deadline = child.started + rng.uniform(0.3, 0.9) * seconds
    while child.alive() and time.monotonic() < deadline:
        time.sleep(0.02)
    if left > 0 and rng.random() < _QUEUE_KILLED and child.alive():
        child.send(signal.SIGKILL)
        if child.wait() == -signal.SIGKILL:
            tally.kills += 1
            tally.in_resumed_runs += any(resumed.values())
            left -= 1
    for job in others:
        if left > 0 and rng.random() < _KILLED_FROM_OUTSIDE and _kill(_Marks(job).pid):
            _count(tally, resumed[job.run_dir], _Marks(job))
            left -= 1
    child.wait()
    if outliving := orphans(_PATIENCE_SECONDS):  # runs that outlive their sweep come to their end
        tally.failures.append(f"runs {outliving} of a killed sweep do not end")
    for job in jobs:
        if job.run_dir in numbers and _Marks(job).died.exists():
            tally.at_files += 1
            _count(tally, resumed[job.run_dir], _Marks(job))


def _count(tally: Tally, resumed: bool, marks: _Marks) -> None:
    tally.kills += 1
    tally.in_resumed_runs += resumed
    tally.while_restoring += resumed and not marks.begun.exists()


def _kill(pid: Path) -> bool:
    """Whether a run that has told its process was still there to be killed."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
        number = int(pid.read_text())
        ended = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        os.kill(number, signal.SIGKILL)
        return not ended
    return False


def _sweep(root: Path, numbers: Mapping[Path, int]) -> None:
    """Both runs; some die at a file operation of that number."""
    outcome = run_jobs(
        _jobs(root), 2, root, command=partial(_run_command, numbers),
        console=Console(file=io.StringIO()), poll_seconds=0.05,
    )  # fmt: skip
    if outcome.exit_code:
        raise RuntimeError("a run has failed")
    (root / "complete").touch()


def _jobs(root: Path) -> list[Job]:
    return [Job(kind, 7, {}, root / f"{number}" / "seed-7") for number, kind in enumerate(RUNS)]


def _run_command(numbers: Mapping[Path, int], job: Job, step: Step) -> list[str]:
    """As `amago_command`, without the drawing of curves."""
    number = [str(numbers[job.run_dir])] if job.run_dir in numbers else []
    return [sys.executable, "-m", "torture.sweeps", job.preset, str(job.run_dir), *number]


class _Marking(Silent):
    def __init__(self, marks: _Marks) -> None:
        self._marks = marks

    def begin(self, folder: Path) -> None:
        os.mknod(self._marks.begun)


def _work(kind: str, run: Path, number: int | None) -> None:
    marks = _Marks(Job(kind, 7, {}, run))
    marks.pid.write_text(f"{os.getpid()}")

    def end() -> None:
        os.mknod(marks.died)  # not one of the operations that are counted
        die()

    at_operation(Board(), number, end)
    go_on(kind, run, _Marking(marks))


if __name__ == "__main__":
    _work(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
