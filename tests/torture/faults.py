"""Attacks other than kill -9: each one for real, each one answered by going on or by a sentence."""

from __future__ import annotations

import signal

from torture import files, machine
from torture.target import Attack, Faults, Target

ATTACKS: dict[str, Attack] = {
    "a flipped bit in a file": files.damaged("flipped"),
    "a file cut short": files.damaged("cut"),
    "an emptied file": files.damaged("emptied"),
    "a removed file": files.damaged("removed"),
    "a symbolic link in place of a file or folder": files.link,
    "a full disk (tmpfs)": machine.full_disk,
    "a read-only disk (tmpfs)": machine.read_only_disk,
    "full, quota, I/O error, read-only, no permission at a file operation": machine.refusing_system,
    "another user without permission": machine.no_permission,
    "SIGSTOP, and a second resume meanwhile": machine.stopped,
    "SIGINT": machine.signalled(signal.SIGINT),
    "SIGTERM": machine.signalled(signal.SIGTERM),
}


def attack(name: str, target: Target, faults: Faults) -> None:
    faults.times += 1
    wrong = ATTACKS[name](target, faults)
    if wrong is not None:
        faults.failures.append(f"{name}, {target.kind}: {wrong}")
