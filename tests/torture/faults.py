"""Attacks other than kill -9: each one for real, each one answered by going on or by a sentence."""

from __future__ import annotations

import signal

from torture import files, machine, processes
from torture.target import Attack, Faults, Target

ATTACKS: dict[str, Attack] = {
    "a flipped bit in a file": files.damaged("flipped"),
    "a file cut short": files.damaged("cut"),
    "an emptied file": files.damaged("emptied"),
    "a removed file": files.damaged("removed"),
    "a pointer to nothing or to the outside": files.wrong_pointer,
    "a symbolic link in place of a file or folder": files.link,
    "a pipe in place of a file": files.pipe,
    "a full disk (tmpfs)": machine.full_disk,
    "a read-only disk (tmpfs)": machine.read_only_disk,
    "full, quota, I/O error, read-only, no permission at a file operation": machine.refusing_system,
    "another user without permission": machine.no_permission,
    "a folder that vanishes": machine.vanished,
    "no more memory (RLIMIT_AS)": processes.no_memory,
    "SIGSTOP, and a second resume meanwhile": processes.stopped,
    "SIGSTOP of a worker": processes.stopped_worker,
    "SIGSTOP of a worker, for good": processes.stuck_worker,
    "kill -9 of a worker": processes.killed_worker,
    "two resumes at once": processes.two_at_once,
    "readers beside a trainer": processes.readers,
    "an error in the user's code": processes.failing_code,
    "SIGINT": processes.signalled(signal.SIGINT),
    "SIGTERM": processes.signalled(signal.SIGTERM),
    "SIGINT while a run is made": processes.signalled_at_start(signal.SIGINT),
    "SIGTERM while a run is made": processes.signalled_at_start(signal.SIGTERM),
}

OF_WORKERS = ("SIGSTOP of a worker", "SIGSTOP of a worker, for good", "kill -9 of a worker")
"""Attacks on runs that have workers."""


def attack(name: str, target: Target, faults: Faults) -> None:
    faults.times += 1
    wrong = ATTACKS[name](target, faults)
    if wrong is not None:
        faults.failures.append(f"{name}, {target.kind}: {wrong}")
