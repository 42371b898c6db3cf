"""Attacks of the machine on a run: its disks, its users, its signals."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from test_run_helpers import differing, no_plots
from test_trust_checkpoints import listing

from amago import api
from torture.children import Board, Child, Watched, at_operation, raising
from torture.runs import KINDS, SEED, config_of
from torture.target import Attack, Faults, Target, resume, run_command

_NOBODY = 65534
_STOPPED_SECONDS = 1.0
_REFUSALS = {
    errno.ENOSPC: "the disk is full", errno.EDQUOT: "quota", errno.EIO: "the disk reports",
    errno.EROFS: "read-only", errno.EACCES: "may not be read or written",
}  # fmt: skip


def _interrupted(target: Target, run: Path) -> None:
    """A run that was stopped in the middle, in that folder."""
    child = _begun(target, run)
    child.send(signal.SIGTERM)
    child.wait()


def _begun(target: Target, run: Path) -> Child:
    """A run somewhere in its first epochs."""
    shutil.rmtree(run, ignore_errors=True)
    board = Board()
    child = Child(_train, target.kind, run, board)
    while not board.begun:
        time.sleep(0.01)
    time.sleep(target.rhythm.seconds * target.rng.uniform(0.0, 0.5))
    return child


def _train(kind: str, run: Path, board: Board) -> None:
    no_plots()
    api.train(config_of(kind), SEED, run, preset=KINDS[kind][0], view=Watched(board))


def _then_exact(target: Target, faults: Faults, run: Path) -> str | None:
    """The cause is gone: the run goes on as if nothing had happened."""
    code, said = resume(target, run)
    if code:
        return f"afterwards, exit code {code}: {said[-300:]}"
    wrong = differing(run, target.whole)
    faults.exact += not wrong
    return f"afterwards, differs in {wrong}" if wrong else None


def full_disk(target: Target, faults: Faults) -> str | None:
    """A disk of its own that is filled up to a random number of bytes."""
    with _Disk(target.folder / "disk") as disk:
        _interrupted(target, disk / "run")
        left = target.rng.choice((0, 4096, 16384, 65536))
        with (disk / "other").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                file.truncate(max(file.tell() - left, 0))
        code, said = resume(target, disk / "run")
        (disk / "other").unlink()
        if code == 2:
            faults.refused += 1
            if "the disk is full" not in said or "Traceback" in said:
                return said[-300:]
        elif code:
            return f"exit code {code}: {said[-300:]}"
        return _then_exact(target, faults, disk / "run")


def read_only_disk(target: Target, faults: Faults) -> str | None:
    with _Disk(target.folder / "disk") as disk:
        _interrupted(target, disk / "run")
        before = listing(disk / "run")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        code, said = resume(target, disk / "run")
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        faults.refused += code == 2
        if code != 2 or "read-only" not in said or listing(disk / "run") != before:
            return f"exit code {code}: {said[-300:]}"
        return _then_exact(target, faults, disk / "run")


class _Disk:
    """A file system of eight megabytes."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def __enter__(self) -> Path:
        self._place.mkdir(exist_ok=True)
        options = ["-o", "size=8m"]
        subprocess.run(["mount", "-t", "tmpfs", *options, "amago", self._place], check=True)
        return self._place

    def __exit__(self, *_: Any) -> None:
        subprocess.run(["umount", "-l", self._place], check=True)


def refusing_system(target: Target, faults: Faults) -> str | None:
    """From a random file operation on, the system refuses all of them."""
    run, number = target.folder / "attacked", target.rng.choice(list(_REFUSALS))
    _interrupted(target, run)
    board, at = Board(), target.rng.randrange(max(target.rhythm.operations // 2, 1))
    child = Child(_with_error, run, board, at, number, log=target.log())
    code, said = child.wait(), target.log().read_text(errors="replace")
    if code == 2:
        faults.refused += 1
        if _REFUSALS[number] not in said or "Traceback" in said:
            return f"{os.strerror(number)} at operation {at}: {said[-300:]}"
    elif code:
        return f"{os.strerror(number)} at operation {at}: exit code {code}: {said[-300:]}"
    return _then_exact(target, faults, run)


def _with_error(run: Path, board: Board, at: int, number: int) -> None:
    at_operation(board, at, raising(number))
    run_command("resume", run)


def no_permission(target: Target, faults: Faults) -> str | None:
    """Another user, who may not write: refused, nothing changed."""
    run = target.folder / "attacked"
    _interrupted(target, run)
    for place in (run, *run.parents):
        if str(place).startswith("/tmp/"):
            place.chmod(0o755)
    before = listing(run)
    code = Child(_as_nobody, run, log=target.log()).wait()
    said = target.log().read_text(errors="replace")
    faults.refused += code == 2
    if code != 2 or "may not be read or written" not in said or listing(run) != before:
        return f"exit code {code}: {said[-300:]}"
    return _then_exact(target, faults, run)


def _as_nobody(run: Path) -> None:
    os.setgroups([])
    os.setgid(_NOBODY)
    os.setuid(_NOBODY)
    run_command("resume", run)


def stopped(target: Target, faults: Faults) -> str | None:
    """SIGSTOP: meanwhile a second resume is refused and a reader sees nothing damaged."""
    run = target.folder / "attacked"
    child = _begun(target, run)
    child.send(signal.SIGSTOP)
    time.sleep(0.05)
    before, wrong = listing(run), None
    if not (run / "result.json").exists():
        code, said = resume(target, run)
        faults.refused += code == 2
        if code != 2 or "only writer" not in said or listing(run) != before:
            wrong = f"a second resume: exit code {code}: {said[-300:]}"
    time.sleep(_STOPPED_SECONDS)
    child.send(signal.SIGCONT)
    code = child.wait()
    differs = [f"exit code {code}"] if code else differing(run, target.whole)
    faults.exact += not differs
    return wrong or (f"differs in {differs}" if differs else None)


def signalled(number: int) -> Attack:
    def send(target: Target, faults: Faults) -> str | None:
        """Stops in order, with the exit code of the signal, and goes on exactly."""
        run = target.folder / "attacked"
        _interrupted(target, run)
        child = Child(run_command, "resume", run, log=target.log())
        time.sleep(target.rhythm.seconds * target.rng.uniform(0.0, 0.6))
        child.send(number)
        code, said = child.wait(), target.log().read_text(errors="replace")
        faults.refused += code == 128 + number
        if code not in (0, 128 + number, -number) or "Traceback" in said:
            return f"exit code {code}: {said[-300:]}"
        return _then_exact(target, faults, run)

    return send
