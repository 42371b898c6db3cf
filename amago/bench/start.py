"""How long a user waits for the first gradient update."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from amago.bench.conditions import Bench
from amago.bench.first_update import REACHED
from amago.bench.processes import environment
from amago.bench.results import Result, Target, duration
from amago.bench.timing import interleave

_MOST_SECONDS = 6.0


def run(bench: Bench, arguments: Sequence[str] = ("t-maze",)) -> list[Result]:
    """A fresh process each time, that finds no compiler."""
    bench.say(f"start: amago train {' '.join(arguments)}")
    with tempfile.TemporaryDirectory(prefix="amago-bench-") as folder:
        variables = _without_compiler(Path(folder) / "bin")
        variables["OMP_NUM_THREADS"] = str(bench.threads)

        def launch(*command: str) -> int:
            done = subprocess.run(
                [sys.executable, *command], cwd=folder, env=variables, capture_output=True,
                text=True, check=False,
            )  # fmt: skip
            if done.returncode not in (0, REACHED):
                raise RuntimeError(f"python {' '.join(command)} failed:\n{done.stderr}")
            return done.returncode

        def train() -> None:
            with tempfile.TemporaryDirectory(dir=folder) as run_dir:
                module = ("-m", "amago.bench.first_update")
                code = launch(*module, *arguments, "--run-dir", f"{run_dir}/run")
            if code != REACHED:
                raise RuntimeError(
                    f"amago train {' '.join(arguments)} ended before its first update"
                )

        contenders = {"amago": train, "import torch": lambda: launch("-c", "import torch")}
        timings = interleave(contenders, replace(bench.effort, block_seconds=0.0))
    mine, importing = timings["amago"], timings["import torch"]
    return [
        Result(
            "start", f"amago train {' '.join(arguments)} to its first update", unit="s",
            yardstick="import torch", ratio=mine.seconds / importing.seconds,
            target=Target("value", "≤", _MOST_SECONDS), **duration(mine, importing),
        )
    ]  # fmt: skip


def _without_compiler(programs: Path) -> dict[str, str]:
    """The environment of a machine on whose PATH there is git alone."""
    programs.mkdir()
    git = shutil.which("git")
    if git is not None:
        (programs / "git").symlink_to(git)
    absent = {"CC": "no-compiler", "CXX": "no-compiler"}
    return {**environment(), **absent, "PATH": str(programs)}
