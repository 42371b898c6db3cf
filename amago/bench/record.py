"""The history of recorded runs: on which machine, with what, and what has changed since."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from amago.bench.conditions import SOURCE, Bench
from amago.bench.results import Result
from amago.saved.header import git_commit

_PACKAGES = ("amago", "torch", "numpy", "gymnasium", "lmdb")


def history_path() -> Path:
    """Where runs are recorded: in the repository that this amago runs from."""
    folder = SOURCE / "benchmarks"
    if not (folder.is_dir() and (SOURCE / "pyproject.toml").exists()):
        raise ValueError(
            "--record writes to benchmarks/history.jsonl of amago's repository, and this amago "
            "does not run from one; run it from a checkout (pip install -e .), or use --json and "
            "keep the output"
        )
    return folder / "history.jsonl"


def history_line(bench: Bench, results: Sequence[Result]) -> dict[str, Any]:
    """One line of the history."""
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "commit": git_commit(),
        "machine": {"model": _cpu_model(), "cores": os.cpu_count(), "system": platform.platform()},
        "threads": bench.threads,
        "device": _device_name(bench.device),
        "quick": bench.quick,
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in _PACKAGES},
        "results": [result.to_json() for result in results],
    }


def append(path: Path, line: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """All lines so far, oldest first."""
    if not path.exists():
        return []
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            _conditions(line)
            lines.append(line)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"expected a recorded run in line {number} of {path}, got {text[:60]!r}; "
                "restore the file with git, or remove the line"
            ) from error
    return lines


def _conditions(line: dict[str, Any]) -> tuple[Any, ...]:
    """What two lines must share to be comparable; commits and dates may differ."""
    machine = line["machine"]
    return (
        machine["model"], machine["cores"], line["threads"], line["versions"]["torch"],
        line["quick"], line.get("device", "cpu"),
    )  # fmt: skip


def latest(
    lines: Iterable[dict[str, Any]], now: dict[str, Any]
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The newest earlier result of each measurement under the same conditions."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in lines:
        if _conditions(line) == _conditions(now):
            for row in line["results"]:
                key = (row["case"], row["setting"], row["unit"], row["yardstick"])
                found[key] = row | {"commit": line["commit"], "date": line["date"]}
    return found


def change(result: Result, before: dict[str, Any] | None) -> str:
    """How value and ratio moved, in per cent."""
    if before is None:
        return "new"
    moves = []
    for name, now in (("value", result.value), ("ratio", result.ratio)):
        then = before[name]
        if now is not None and then:
            moves.append(f"{name} {100.0 * (now / then - 1.0):+.1f}%")
    uncertain = " (disturbed)" if before["disturbed"] or result.disturbed else ""
    return (", ".join(moves) or "–") + uncertain


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def _cpu_model() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
