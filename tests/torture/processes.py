"""Attacks on a run's processes: signals, a lack of memory, rivals, readers, errors."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from test_run_helpers import differing
from test_trust_checkpoints import listing

from torture.children import Board, Child, Watched, descendants
from torture.runs import go_on
from torture.target import Attack, Faults, Target, begun, interrupted, run_command, then_exact
from torture.target import resume as resumed
from torture.target import train as trained

_STOPPED_SECONDS = 1.0
_STUCK_SECONDS, _PATIENT_SECONDS = 10, 600
"""Until a worker that does not answer is an error: in the attack, and as ever."""
_HEADROOM = (1 << 20, 64 << 20)
"""Bytes that a run may still take when there is no more memory."""


def stopped(target: Target, faults: Faults) -> str | None:
    """SIGSTOP: meanwhile a second resume is refused and changes nothing."""
    run = target.folder / "attacked"
    child = begun(target, run)
    child.send(signal.SIGSTOP)
    time.sleep(0.05)
    before, wrong = listing(run), None
    if not (run / "result.json").exists():
        code, said = resumed(target, run)
        faults.refused += code == 2
        if code != 2 or "only writer" not in said or listing(run) != before:
            wrong = f"a second resume: exit code {code}: {said[-300:]}"
    time.sleep(_STOPPED_SECONDS)
    child.send(signal.SIGCONT)
    return wrong or _ends_exactly(child, target, faults, run)


def stopped_worker(target: Target, faults: Faults) -> str | None:
    """A worker that stands still for a while is waited for."""
    run = target.folder / "attacked"
    child = begun(target, run)
    workers = _workers(child)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in workers[:1]:
            _signal(pid, number)
        time.sleep(_STOPPED_SECONDS)
    return _ends_exactly(child, target, faults, run)


def stuck_worker(target: Target, faults: Faults) -> str | None:
    """A worker that stands still for good is named, then ends the run in one sentence."""
    run = target.folder / "attacked"
    interrupted(target, run)
    child = Child(run_command, "resume", run, *_timeout(_STUCK_SECONDS), log=target.log())
    time.sleep(target.rhythm.seconds * target.rng.uniform(0.2, 0.6))
    for pid in _workers(child)[:1]:
        _signal(pid, signal.SIGSTOP)
    code, said = child.wait(), target.log().read_text(errors="replace")
    faults.refused += code == 2
    unnamed = code == 2 and ("is silent for" not in said or "did not answer" not in said)
    if code not in (0, 2) or "Traceback" in said or unnamed:
        return f"exit code {code}: {said[-300:]}"
    return then_exact(target, faults, run, *_timeout(_PATIENT_SECONDS))


def _timeout(seconds: int) -> tuple[str, str]:
    return "--set", f"env.timeout_seconds={seconds}"


def killed_worker(target: Target, faults: Faults) -> str | None:
    """A worker that is gone ends the run in one sentence."""
    run = target.folder / "attacked"
    interrupted(target, run)
    child = Child(run_command, "resume", run, log=target.log())
    time.sleep(target.rhythm.seconds * target.rng.uniform(0.2, 0.6))
    for pid in _workers(child)[:1]:
        _signal(pid, signal.SIGKILL)
    code, said = child.wait(), target.log().read_text(errors="replace")
    faults.refused += code == 2
    if code not in (0, 2) or "Traceback" in said or (code == 2 and "worker" not in said):
        return f"exit code {code}: {said[-300:]}"
    return then_exact(target, faults, run)


def two_at_once(target: Target, faults: Faults) -> str | None:
    """Two processes resume the same run: one does, the other changes nothing."""
    run, logs = target.folder / "attacked", [target.folder / f"rival-{n}.log" for n in (0, 1)]
    interrupted(target, run)
    rivals = []
    for log in logs:
        rivals.append(Child(run_command, "resume", run, log=log))
        time.sleep(target.rng.choice((0.0, 0.02, 0.2)))
    codes = [rival.wait() for rival in rivals]
    said = [log.read_text(errors="replace") for log in logs]
    faults.refused += 2 in codes
    refused = [text for code, text in zip(codes, said, strict=True) if code == 2]
    one_goes_on = 0 in codes and set(codes) <= {0, 2}
    if not one_goes_on or any("only writer" not in text for text in refused):
        return f"exit codes {codes}: {[text[-200:] for text in said]}"
    return then_exact(target, faults, run)


def readers(target: Target, faults: Faults) -> str | None:
    """Whoever reads a run beside its trainer never sees anything damaged."""
    run = target.folder / "attacked"
    child, wrong = begun(target, run), list[str]()
    while child.alive():
        for verb in (("verify", run), ("eval", run, "--episodes", "1", "--json")):
            code = Child(run_command, *verb, log=target.log()).wait()
            said = target.log().read_text(errors="replace")
            if code and "has no checkpoint" not in said:
                wrong.append(f"{verb[0]}: exit code {code}: {said[-300:]}")
    return "; ".join(wrong) or _ends_exactly(child, target, faults, run)


class _Failing(Watched):
    """Code of a user that raises after some epochs."""

    def __init__(self, epochs: int) -> None:
        super().__init__(Board())
        self._left = epochs

    def epoch(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
        self._left -= 1
        if self._left < 0:
            raise KeyError("an error of the user's own code")


def failing_code(target: Target, faults: Faults) -> str | None:
    """An error in the user's code: the last complete epoch is kept."""
    run, epochs = target.folder / "attacked", target.rng.randrange(6)
    shutil.rmtree(run, ignore_errors=True)
    code = Child(trained, target.kind, run, _Failing(epochs), log=target.log()).wait()
    said = target.log().read_text(errors="replace")
    faults.refused += code == 1
    if code != 1 or (epochs and f"the checkpoint of epoch {epochs}" not in said):
        return f"exit code {code}: {said[-300:]}"
    return then_exact(target, faults, run)


def no_memory(target: Target, faults: Faults) -> str | None:
    """A process that gets no more memory ends; its run goes on exactly elsewhere."""
    run = target.folder / "attacked"
    interrupted(target, run)
    more = target.rng.randrange(*_HEADROOM)
    code = Child(_with_little_memory, run, more, log=target.log()).wait()
    said = target.log().read_text(errors="replace")
    faults.refused += code == 2
    # A library may abort on its own; the system would kill the process without a word.
    if code not in (0, 2, -signal.SIGABRT, -signal.SIGSEGV) or (code == 2 and "Traceback" in said):
        return f"{more} bytes more: exit code {code}: {said[-300:]}"
    return then_exact(target, faults, run)


def _with_little_memory(run: Path, more: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    run_command("resume", run)


def signalled(number: int) -> Attack:
    def send(target: Target, faults: Faults) -> str | None:
        """Stops in order, with the exit code of the signal, and goes on exactly."""
        run = target.folder / "attacked"
        interrupted(target, run)
        child = Child(run_command, "resume", run, log=target.log())
        time.sleep(target.rhythm.seconds * target.rng.uniform(0.0, 0.6))
        child.send(number)
        code, said = child.wait(), target.log().read_text(errors="replace")
        faults.refused += code == 128 + number
        if code not in (0, 128 + number, -number) or "Traceback" in said:
            return f"exit code {code}: {said[-300:]}"
        return then_exact(target, faults, run)

    return send


def signalled_at_start(number: int) -> Attack:
    def send(target: Target, faults: Faults) -> str | None:
        """What is left of a run that was stopped while it was made does not stand in its way."""
        run = target.folder / "attacked"
        shutil.rmtree(run, ignore_errors=True)
        child = Child(trained, target.kind, run, Watched(Board()), log=target.log())
        time.sleep(target.rng.uniform(0.0, 0.3 * target.rhythm.seconds))
        child.send(number)
        code, said = child.wait(), target.log().read_text(errors="replace")
        faults.refused += code == 128 + number
        if code not in (0, 128 + number, -number) or "Traceback" in said:
            return f"exit code {code}: {said[-300:]}"
        return _ends_exactly(Child(go_on, target.kind, run), target, faults, run)

    return send


def _ends_exactly(child: Child, target: Target, faults: Faults, run: Path) -> str | None:
    """What is wrong with a run that should end by itself, and be exact."""
    code = child.wait()
    differs = [f"exit code {code}"] if code else differing(run, target.whole)
    faults.exact += not differs
    return f"differs in {differs}" if differs else None


def _workers(child: Child) -> list[int]:
    """The processes that play a run's environments: children of the server that forks them."""
    return [worker for server in descendants(child.pid) for worker in descendants(server)]


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
