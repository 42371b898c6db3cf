"""The queue of a sweep: children that run, and jobs that wait for their place."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from amago.sweep.jobs import Command, Job, Step, next_step, prepare, short_names
from amago.sweep.progress import Progress

_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Outcome:
    """How a sweep ended."""

    skipped: list[Job]
    done: list[Job]
    failed: list[Job]
    signal: int | None = None
    """The signal that ended the sweep early."""

    @property
    def exit_code(self) -> int:
        return 128 + self.signal if self.signal else int(bool(self.failed))


@dataclass
class Queue:
    """The jobs of a sweep and the children that run them."""

    jobs: Sequence[Job]
    num_parallel: int
    command: Command
    console: Console
    lock_handle: int
    devices: Sequence[str] = ()
    """Numbers of GPUs that are handed out to the children."""
    progress: list[Progress] = field(init=False)
    skipped: list[Job] = field(init=False)
    children: dict[Path, subprocess.Popen[bytes]] = field(default_factory=dict)
    given: dict[Path, str] = field(default_factory=dict)
    """Which GPU each child has."""

    def __post_init__(self) -> None:
        self.skipped = [job for job in self.jobs if next_step(job) == "skip"]
        self.progress = [Progress(job) for job in self.jobs if job not in self.skipped]

    @property
    def pending(self) -> bool:
        return any(item.state in ("queued", "running") for item in self.progress)

    def name(self, job: Job) -> str:
        """A job's name for people, different from the others of this sweep."""
        return short_names([*self.jobs, *(item.job for item in self.progress)])[job.run_dir]

    def advance(self) -> None:
        """Note which children ended, and start others in their place."""
        for item in self.progress:
            if item.state == "running":
                item.read()
                code = self.children[item.job.run_dir].poll()
                if code is not None:
                    self._end(item, code)
        for item in self.progress:
            if item.state == "queued" and len(self.children) < self.num_parallel:
                self._start(item)

    def add(self, job: Job) -> None:
        """One more job, behind the others."""
        if next_step(job) == "skip":
            self.skipped.append(job)
        else:
            self.progress.append(Progress(job))

    def prune(self, item: Progress) -> None:
        """End a run that is not worth finishing."""
        item.pruned = True
        self.children[item.job.run_dir].terminate()

    def stop(self, grace_seconds: float, received: Sequence[int]) -> None:
        """End the children: ask, wait, and kill those that stay, at once on a second signal."""
        for child in self.children.values():
            child.terminate()
        deadline = time.monotonic() + grace_seconds
        while any(child.poll() is None for child in self.children.values()):
            if time.monotonic() > deadline or len(received) > 1:
                break
            time.sleep(0.05)
        for child in self.children.values():
            if child.poll() is None:
                # The group, since a killed child cannot end its own environment workers.
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()

    def outcome(self, received: int | None) -> Outcome:
        done = [item.job for item in self.progress if next_step(item.job) == "skip"]
        failed = [item.job for item in self.progress if item.state == "failed"]
        return Outcome(self.skipped, done, failed, received)

    def _start(self, item: Progress) -> None:
        job, step = item.job, next_step(item.job)
        try:
            prepare(job)
            self.children[job.run_dir] = self._spawn(job, step)
        except OSError as error:
            item.state, item.note = "failed", str(error)
            self._say(f"failed: {self.name(job)} {error}")
            return
        item.start()
        self._say(f"{'resumes' if step == 'resume' else 'starts'} {self.name(job)}")

    def _spawn(self, job: Job, step: Step) -> subprocess.Popen[bytes]:
        arguments = self.command(job, step)
        visible = self._device(job)
        with job.log.open("ab") as log:
            log.write(f"$ {shlex.join(arguments)}\n".encode())
            log.flush()
            return subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **_ONE_THREAD, **visible, "PYTHONUNBUFFERED": "1"},
                # Ctrl-C reaches the sweep alone, which then ends its children in order.
                start_new_session=True,
                # A child that outlives a killed sweep keeps the lock, so no second one joins it.
                pass_fds=(self.lock_handle,),
            )

    def _device(self, job: Job) -> dict[str, str]:
        """The GPU that fewest children use, as the only one that the job sees."""
        if not self.devices:
            return {}
        used = [self.given[run_dir] for run_dir in self.children]
        self.given[job.run_dir] = min(self.devices, key=used.count)
        return {"CUDA_VISIBLE_DEVICES": self.given[job.run_dir]}

    def _end(self, item: Progress, code: int) -> None:
        del self.children[item.job.run_dir]
        complete = code == 0 and next_step(item.job) == "skip"
        if item.pruned and not complete:
            item.state = "pruned"
            self._say(f"pruned: {self.name(item.job)} at epoch {item.epoch}")
            return
        item.state = "done" if complete else "failed"
        item.note = "" if complete else f"exit code {code}" if code else "no result.json"
        self._say(f"{item.state}: {self.name(item.job)} {item.note}".rstrip())

    def _say(self, text: str) -> None:
        self.console.print(escape(text), highlight=False, soft_wrap=True)
