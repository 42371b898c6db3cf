"""CPU time of updates and of collecting in two commits, measured in turns on this machine.

    python benchmarks/two_commits.py OLD [NEW] [--rounds 15] [--only NAME …]

Without `NEW` the working tree is measured. One process per commit lives as long as the
measurement; they take turns in short blocks, in alternating order. Printed are the median CPU
time of a call on either side, and the median over rounds of new / old with its quartiles. CPU
time, one thread, so that a busy machine disturbs it little.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
CASES = ("update 24x100", "update 24x128", "update 24x500", "collect 24", "collect 512")
BLOCK_SECONDS = 0.5
"""CPU time that one turn takes, at least one call."""


def contender(name: str, opened: contextlib.ExitStack) -> Callable[[], Any]:
    """What is timed: the cases of `amago bench learner rollout`, with the amago imported here."""
    from amago.bench import learner, rollout
    from amago.bench.synthetic import make_batch, make_learner

    kind, which = name.split()
    if kind == "update":
        sizes = {"24x100": learner.POPGYM, "24x128": learner.MEDIUM, "24x500": learner.LONG}
        learning, batch = make_learner(sizes[which]), make_batch(sizes[which])
        return lambda: learning.step(batch)
    config = rollout.config_of(rollout.WIDE if which == "24" else rollout.NARROW)
    return rollout.Loop(config, int(which), rollout.agent_policy(config), opened)


def answer() -> None:
    """A commit's own process: `NAME<tab>CALLS` in, CPU seconds per call out."""
    import torch

    torch.set_num_threads(1)
    made: dict[str, Callable[[], Any]] = {}
    with contextlib.ExitStack() as opened:
        for line in sys.stdin:
            name, calls = line.rstrip("\n").split("\t")
            if name not in made:
                made[name] = contender(name, opened)
            start = time.process_time()
            for _ in range(int(calls)):
                made[name]()
            print((time.process_time() - start) / int(calls), flush=True)


class Side:
    """One commit's process."""

    def __init__(self, source: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--answer"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=source,
        )  # fmt: skip

    def seconds(self, name: str, calls: int) -> float:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{name}\t{calls}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self.process.args} ended with an error")
        return float(line)

    def close(self) -> None:
        self.process.communicate()


@contextlib.contextmanager
def checkout(commit: str | None) -> Iterator[Path]:
    """The files of a commit; None is the working tree."""
    if commit is None:
        yield ROOT
        return
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        subprocess.run([*git, "add", "-q", "--detach", str(source), commit], check=True)
        try:
            yield source
        finally:
            subprocess.run([*git, "remove", "--force", str(source)], check=True)


def measure(old: Side, new: Side, name: str, rounds: int) -> str:
    """One row of the table."""
    for side in (old, new):
        side.seconds(name, 2)  # warm up
    calls = max(1, round(BLOCK_SECONDS / old.seconds(name, 1)))
    times = np.zeros((rounds, 2))
    for turn in range(rounds):
        for column in (0, 1) if turn % 2 == 0 else (1, 0):
            times[turn, column] = (old, new)[column].seconds(name, calls)
    before, after = np.median(times, 0)
    low, middle, high = np.percentile(times[:, 1] / times[:, 0], (25, 50, 75))
    return f"| {name} | {before:.4f} | {after:.4f} | {middle:.3f} | {low:.3f} to {high:.3f} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", help="a commit")
    parser.add_argument("new", nargs="?", help="a commit; unset: this tree")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", default=[], help="cases whose names contain this")
    arguments = parser.parse_args()
    chosen = [n for n in CASES if not arguments.only or any(part in n for part in arguments.only)]
    print("| case | old, s | new, s | new / old | quartiles |\n|---|---|---|---|---|", flush=True)
    with checkout(arguments.old) as before, checkout(arguments.new) as after:
        old, new = Side(before), Side(after)
        for name in chosen:
            print(measure(old, new, name, arguments.rounds), flush=True)
        old.close()
        new.close()


if __name__ == "__main__":
    answer() if sys.argv[1:] == ["--answer"] else main()
