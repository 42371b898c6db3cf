"""A finished run, copies of which are attacked, and what is right to happen then."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from test_run_helpers import differing, no_plots

from torture.children import Child, command
from torture.kills import Rhythm


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


def resume(target: Target, run: Path) -> tuple[int, str]:
    """Exit code and words of `amago resume`."""
    code = Child(run_command, "resume", run, log=target.log()).wait()
    return code, target.log().read_text(errors="replace")


def run_command(*arguments: str | Path) -> None:
    no_plots()
    command(*arguments)


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
