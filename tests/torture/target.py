"""A finished run, copies of which are attacked, and what is right to happen then."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from test_run_helpers import differing, no_plots

from amago import api
from amago.training.view import View
from torture.children import Board, Child, Watched, command
from torture.kills import Rhythm
from torture.runs import KINDS, SEED, config_of


@dataclass
class Faults:
    """How runs answered one attack."""

    times: int = 0
    exact: int = 0
    """Went on to the very run that nothing happened to."""
    went_on: int = 0
    """Went on with what was left, and said so."""
    refused: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Target:
    """A finished run, copies of which are attacked."""

    kind: str
    folder: Path
    whole: Path
    rhythm: Rhythm
    rng: random.Random

    def copy(self, *, place: Path | None = None) -> Path:
        """The run without its final test, so that a resume has something to do."""
        run = (place or self.folder) / "attacked"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(self.whole, run)
        (run / "result.json").unlink()
        return run

    def log(self) -> Path:
        return self.folder / "attacked.log"


Attack = Callable[[Target, Faults], str | None]
"""Attacks once; what went wrong, if something did."""


def resume(target: Target, run: Path, *options: str) -> tuple[int, str]:
    """Exit code and words of `amago resume`."""
    code = Child(run_command, "resume", run, *options, log=target.log()).wait()
    return code, target.log().read_text(errors="replace")


def run_command(*arguments: str | Path) -> None:
    no_plots()
    command(*arguments)


def interrupted(target: Target, run: Path) -> None:
    """A run that was stopped in the middle, in that folder."""
    child = begun(target, run)
    child.send(signal.SIGTERM)
    child.wait()


def begun(target: Target, run: Path) -> Child:
    """A run somewhere in its first epochs."""
    shutil.rmtree(run, ignore_errors=True)
    board = Board()
    child = Child(train, target.kind, run, Watched(board))
    while not board.begun:
        time.sleep(0.01)
    time.sleep(target.rhythm.seconds * target.rng.uniform(0.0, 0.5))
    return child


def train(kind: str, run: Path, view: View) -> None:
    no_plots()
    api.train(config_of(kind), SEED, run, preset=KINDS[kind][0], view=view)


def then_exact(target: Target, faults: Faults, run: Path, *options: str) -> str | None:
    """The cause is gone: the run goes on as if nothing had happened."""
    code, said = resume(target, run, *options)
    if code:
        return f"afterwards, exit code {code}: {said[-300:]}"
    wrong = differing(run, target.whole)
    faults.exact += not wrong
    return f"afterwards, differs in {wrong}" if wrong else None


def judge(target: Target, faults: Faults, run: Path, code: int, said: str) -> str | None:
    """A damaged run may go on or refuse in one sentence; nothing else is right."""
    if code == 2 and "Traceback" not in said and said.count("amago: ") == 1:
        faults.refused += 1
    elif code == 0 and not differing(run, target.whole):
        faults.exact += 1
    elif code == 0 and (run / "result.json").exists():
        faults.went_on += 1
    else:
        return f"exit code {code}: {said[-300:]}"
    return None
