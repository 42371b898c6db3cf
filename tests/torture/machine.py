"""Attacks of the machine on a run: its disks, its permissions, its folders."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from test_trust_checkpoints import listing

from torture.children import Board, Child, at_operation, raising
from torture.target import Faults, Target, interrupted, resume, run_command, then_exact

_NOBODY = 65534
_REFUSALS = {
    errno.ENOSPC: "the disk is full", errno.EDQUOT: "quota", errno.EIO: "the disk reports",
    errno.EROFS: "read-only", errno.EACCES: "may not be read or written",
}  # fmt: skip


def full_disk(target: Target, faults: Faults) -> str | None:
    """A disk of its own that is filled up to a random number of bytes."""
    with _Disk(target.folder / "disk") as disk:
        interrupted(target, disk / "run")
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
        return then_exact(target, faults, disk / "run")


def read_only_disk(target: Target, faults: Faults) -> str | None:
    with _Disk(target.folder / "disk") as disk:
        interrupted(target, disk / "run")
        before = listing(disk / "run")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        code, said = resume(target, disk / "run")
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        faults.refused += code == 2
        if code != 2 or "read-only" not in said or listing(disk / "run") != before:
            return f"exit code {code}: {said[-300:]}"
        return then_exact(target, faults, disk / "run")


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
    interrupted(target, run)
    board, at = Board(), target.rng.randrange(max(target.rhythm.operations // 2, 1))
    child = Child(_with_error, run, board, at, number, log=target.log())
    code, said = child.wait(), target.log().read_text(errors="replace")
    if code == 2:
        faults.refused += 1
        if _REFUSALS[number] not in said or "Traceback" in said:
            return f"{os.strerror(number)} at operation {at}: {said[-300:]}"
    elif code:
        return f"{os.strerror(number)} at operation {at}: exit code {code}: {said[-300:]}"
    return then_exact(target, faults, run)


def _with_error(run: Path, board: Board, at: int, number: int) -> None:
    at_operation(board, at, raising(number))
    run_command("resume", run)


def no_permission(target: Target, faults: Faults) -> str | None:
    """Another user, who may not write: refused, nothing changed."""
    run = target.folder / "attacked"
    interrupted(target, run)
    for place in (run, *run.parents):
        if str(place).startswith("/tmp/"):
            place.chmod(0o755)
    before = listing(run)
    code = Child(_as_nobody, run, log=target.log()).wait()
    said = target.log().read_text(errors="replace")
    faults.refused += code == 2
    if code != 2 or "may not be read or written" not in said or listing(run) != before:
        return f"exit code {code}: {said[-300:]}"
    return then_exact(target, faults, run)


def _as_nobody(run: Path) -> None:
    os.setgroups([])
    os.setgid(_NOBODY)
    os.setuid(_NOBODY)
    run_command("resume", run)


def vanished(target: Target, faults: Faults) -> str | None:
    """The folder is moved away while the run is written, and back afterwards."""
    run, away = target.folder / "attacked", target.folder / "moved-away"
    interrupted(target, run)
    child = Child(run_command, "resume", run, log=target.log())
    time.sleep(target.rhythm.seconds * target.rng.uniform(0.0, 0.5))
    run.rename(away)
    code, said = child.wait(), target.log().read_text(errors="replace")
    shutil.rmtree(run, ignore_errors=True)  # nothing but what the run may have made anew
    away.rename(run)
    faults.refused += code == 2
    if code not in (0, 2) or "Traceback" in said or (code == 2 and "moved or removed" not in said):
        return f"exit code {code}: {said[-300:]}"
    return then_exact(target, faults, run)
