"""Measurements that need a process of their own, and what a process occupies."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from amago.bench.conditions import SOURCE
from amago.process import kibibytes

_MEMINFO = Path("/proc/meminfo")


def in_child(task: str, payload: dict[str, Any]) -> dict[str, Any]:
    """What a task of amago.bench.child answers; {"error": ...} where it ran out of memory."""
    done = subprocess.run(
        [sys.executable, "-m", "amago.bench.child", task],
        input=json.dumps(payload),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == -signal.SIGKILL:
        return {"error": "killed, most likely for lack of memory"}
    if done.returncode:
        raise RuntimeError(f"the measurement {task!r} failed in its process:\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def environment() -> dict[str, str]:
    """This process's environment, in which Python finds the same amago from any folder."""
    paths = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def limit_memory(limit_bytes: float) -> float:
    """Let allocations fail beyond this, or beyond most of what the machine has left: a process that
    asks for too much must not take others down. Returns the limit."""
    if _MEMINFO.exists():
        limit_bytes = min(limit_bytes, 0.9 * kibibytes(_MEMINFO)["MemAvailable"])
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (int(limit_bytes), hard))
    return limit_bytes
