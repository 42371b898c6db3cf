"""Attacks other than kill -9: each one for real, each one answered by going on or by a sentence."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from test_run_helpers import differing, no_plots
from test_trust_checkpoints import listing

from amago import api
from torture.children import Board, Child, Watched, at_operation, command, raising
from torture.kills import Rhythm
from torture.runs import KINDS, SEED, config_of

_FILES = (
    "checkpoints/*/model.safetensors", "checkpoints/*/optimizer.safetensors",
    "checkpoints/*/state.json", "checkpoints/*/checksums.json", "checkpoints/latest.json",
    "checkpoints/best.json", "config.json", "metrics.jsonl", "timing.jsonl", "replay/data.mdb",
)  # fmt: skip
_FOLDERS = ("checkpoints", "checkpoints/[0-9]*", "replay")
_NOBODY = 65534
_STOPPED_SECONDS = 1.0
_REFUSALS = {
    errno.ENOSPC: "the disk is full", errno.EDQUOT: "quota", errno.EIO: "the disk reports",
    errno.EROFS: "read-only", errno.EACCES: "may not be read or written",
}  # fmt: skip


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


def attack(name: str, target: Target, faults: Faults) -> None:
    faults.times += 1
    wrong = ATTACKS[name](target, faults)
    if wrong is not None:
        faults.failures.append(f"{name}, {target.kind}: {wrong}")


def _resume(target: Target, run: Path) -> tuple[int, str]:
    """Exit code and words of `amago resume`."""
    code = Child(_command, "resume", run, log=target.log()).wait()
    return code, target.log().read_text(errors="replace")


def _command(*arguments: str | Path) -> None:
    no_plots()
    command(*arguments)


def _judge(target: Target, faults: Faults, run: Path, code: int, said: str) -> str | None:
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


def _damaged(how: str) -> Attack:
    def damage(target: Target, faults: Faults) -> str | None:
        run, rng = target.copy(), target.rng
        path = rng.choice(sorted(path for name in _FILES for path in run.glob(name)))
        data = bytearray(path.read_bytes())
        if how == "removed":
            path.unlink()
        elif how == "flipped":
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            path.write_bytes(data)
        else:
            path.write_bytes(data[: rng.randrange(len(data)) if how == "cut" else 0])
        wrong = _judge(target, faults, run, *_resume(target, run))
        return wrong and f"{path.relative_to(run)} {how}: {wrong}"

    return damage


def _link(target: Target, faults: Faults) -> str | None:
    """A file or folder that is a link to something else: refused, and that stays as it is."""
    run, outside = target.copy(), target.folder / "outside"
    shutil.rmtree(outside, ignore_errors=True)
    path = target.rng.choice(sorted(p for name in (*_FILES, *_FOLDERS) for p in run.glob(name)))
    outside.mkdir()
    path.rename(outside / "moved")
    os.symlink(outside / "moved", path)
    before = listing(outside)
    code, said = _resume(target, run)
    if listing(outside) != before:
        return f"{path.relative_to(run)}: what it points to was changed"
    faults.refused += code == 2
    return None if code == 2 and "symbolic link" in said else f"exit code {code}: {said[-300:]}"


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
    code, said = _resume(target, run)
    if code:
        return f"afterwards, exit code {code}: {said[-300:]}"
    wrong = differing(run, target.whole)
    faults.exact += not wrong
    return f"afterwards, differs in {wrong}" if wrong else None


def _full_disk(target: Target, faults: Faults) -> str | None:
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
        code, said = _resume(target, disk / "run")
        (disk / "other").unlink()
        if code == 2:
            faults.refused += 1
            if "the disk is full" not in said or "Traceback" in said:
                return said[-300:]
        elif code:
            return f"exit code {code}: {said[-300:]}"
        return _then_exact(target, faults, disk / "run")


def _read_only_disk(target: Target, faults: Faults) -> str | None:
    with _Disk(target.folder / "disk") as disk:
        _interrupted(target, disk / "run")
        before = listing(disk / "run")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        code, said = _resume(target, disk / "run")
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


def _refusing_system(target: Target, faults: Faults) -> str | None:
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
    _command("resume", run)


def _no_permission(target: Target, faults: Faults) -> str | None:
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
    _command("resume", run)


def _stopped(target: Target, faults: Faults) -> str | None:
    """SIGSTOP: meanwhile a second resume is refused and a reader sees nothing damaged."""
    run = target.folder / "attacked"
    child = _begun(target, run)
    child.send(signal.SIGSTOP)
    time.sleep(0.05)
    before, wrong = listing(run), None
    if not (run / "result.json").exists():
        code, said = _resume(target, run)
        faults.refused += code == 2
        if code != 2 or "only writer" not in said or listing(run) != before:
            wrong = f"a second resume: exit code {code}: {said[-300:]}"
    time.sleep(_STOPPED_SECONDS)
    child.send(signal.SIGCONT)
    code = child.wait()
    differs = [f"exit code {code}"] if code else differing(run, target.whole)
    faults.exact += not differs
    return wrong or (f"differs in {differs}" if differs else None)


def _signalled(number: int) -> Attack:
    def send(target: Target, faults: Faults) -> str | None:
        """Stops in order, with the exit code of the signal, and goes on exactly."""
        run = target.folder / "attacked"
        _interrupted(target, run)
        child = Child(_command, "resume", run, log=target.log())
        time.sleep(target.rhythm.seconds * target.rng.uniform(0.0, 0.6))
        child.send(number)
        code, said = child.wait(), target.log().read_text(errors="replace")
        faults.refused += code == 128 + number
        if code not in (0, 128 + number, -number) or "Traceback" in said:
            return f"exit code {code}: {said[-300:]}"
        return _then_exact(target, faults, run)

    return send


ATTACKS: dict[str, Attack] = {
    "a flipped bit in a file": _damaged("flipped"),
    "a file cut short": _damaged("cut"),
    "an emptied file": _damaged("emptied"),
    "a removed file": _damaged("removed"),
    "a symbolic link in place of a file or folder": _link,
    "a full disk (tmpfs)": _full_disk,
    "a read-only disk (tmpfs)": _read_only_disk,
    "full, quota, I/O error, read-only, no permission at a file operation": _refusing_system,
    "another user without permission": _no_permission,
    "SIGSTOP, and a second resume meanwhile": _stopped,
    "SIGINT": _signalled(signal.SIGINT),
    "SIGTERM": _signalled(signal.SIGTERM),
}
