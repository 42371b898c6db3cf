"""Runs that are killed again and again until they are complete."""

from __future__ import annotations

import random
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from test_run_helpers import differing

from torture.children import Board, Child, Watched, at_operation, orphans
from torture.runs import go_on, resumes

_MOST_ATTEMPTS = 60
_KILLS_PER_RUN = (2, 8)
_AIMED_AT_RESUME = 0.7
"""Of the kills of a run that exists: then about half of all kills come while it is restored."""
_AT_FILES = 0.6
_ORPHAN_SECONDS = 20.0


@dataclass
class Tally:
    """What was done to the runs of one kind, and what came of it."""

    kills: int = 0
    while_restoring: int = 0
    in_resumed_runs: int = 0
    at_files: int = 0
    runs: int = 0
    exact: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass
class Rhythm:
    """How long a kind of run takes, so that kills come while something happens."""

    seconds: float
    operations: int
    restore_seconds: float = 0.2
    restore_operations: int = 20


def undisturbed(kind: str, folder: Path) -> Rhythm:
    """The run that nothing happens to."""
    board = Board()
    child = Child(_watched, kind, folder, board, None, log=folder.with_suffix(".log"))
    code = child.wait()
    if code:
        said = folder.with_suffix(".log").read_text()
        raise RuntimeError(f"the undisturbed run of {kind!r} ended with {code}:\n{said}")
    return Rhythm(time.monotonic() - child.started, board.operations)


def kill_runs(kind: str, folder: Path, whole: Path, rhythm: Rhythm, kills: int,
              rng: random.Random, tally: Tally) -> None:  # fmt: skip
    """So many kills, spread over as many runs as that takes; each run has to be exact."""
    while tally.kills < kills:
        wanted = min(tally.kills + rng.randint(*_KILLS_PER_RUN), kills)
        _one_run(kind, folder, whole, rhythm, wanted, rng, tally)


def _one_run(kind: str, folder: Path, whole: Path, rhythm: Rhythm, wanted: int,
             rng: random.Random, tally: Tally) -> None:  # fmt: skip
    run = folder / "killed"
    shutil.rmtree(run, ignore_errors=True)
    log = folder / "killed.log"
    for attempt in range(_MOST_ATTEMPTS):
        last = tally.kills >= wanted or attempt == _MOST_ATTEMPTS - 1
        code = _attempt(kind, run, rhythm, rng, tally, log, undisturbed=last)
        left = orphans(_ORPHAN_SECONDS)
        if left:
            tally.failures.append(f"processes {left} outlive a killed run by {_ORPHAN_SECONDS} s")
        if code != -signal.SIGKILL:
            break
    tally.runs += 1
    wrong = [f"exit code {code}: {log.read_text()[-300:]}"] if code else differing(run, whole)
    tally.exact += not wrong
    if wrong:
        kept = folder / f"failure-{len(tally.failures)}-{kind.replace(' ', '-')}"
        shutil.copytree(run, kept, dirs_exist_ok=True)
        tally.failures.append(f"killed run differs in {wrong} ({kept})")


def _attempt(kind: str, run: Path, rhythm: Rhythm, rng: random.Random, tally: Tally, log: Path,
             *, undisturbed: bool) -> int:  # fmt: skip
    """Go on with a run and kill it on the way; its exit code."""
    resumed, board = resumes(kind, run), Board()
    at_resume = resumed and rng.random() < _AIMED_AT_RESUME
    at_file = rng.random() < _AT_FILES
    operations = rhythm.restore_operations if at_resume else rhythm.operations
    seconds = rhythm.restore_seconds if at_resume else 0.9 * rhythm.seconds
    number = rng.randrange(max(operations, 1)) if at_file and not undisturbed else None
    child = Child(_watched, kind, run, board, number, log=log)
    if at_file or undisturbed:
        code = child.wait()
    else:
        code = child.kill_after(rng.uniform(0.0, seconds))
    if resumed and board.begun:
        rhythm.restore_seconds = board.begun - child.started
        rhythm.restore_operations = board.operations_to_begin
    if code == -signal.SIGKILL:
        tally.kills += 1
        tally.at_files += at_file
        tally.in_resumed_runs += resumed
        tally.while_restoring += resumed and not board.begun
    return code


def _watched(kind: str, run: Path, board: Board, number: int | None) -> None:
    at_operation(board, number)
    go_on(kind, run, Watched(board))
