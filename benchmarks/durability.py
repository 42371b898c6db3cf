"""What durability costs: commits of the replay with and without flushing, and checkpoints.

    python benchmarks/durability.py [--folder .] [--rounds 15]

The folder decides the disk. All kinds are timed in turn, round by round; shown are medians. The
replay uses "all but the meta page": a power cut can cost what came after the last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import lmdb
import numpy as np
import torch

from amago.saved import checkpoint

KINDS = {
    "everything": {},
    "all but the meta page (amago)": {"metasync": False},
    "nothing": {"sync": False},
}
BYTES = 25_000
PARAMETERS = 400_000


def commits(folder: Path, counts: tuple[int, ...], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of one commit of so many trajectories, by what is flushed."""
    record = np.random.default_rng(0).bytes(BYTES)
    stores = {
        kind: lmdb.open(str(folder / f"store-{number}"), map_size=1 << 30, **options)
        for number, (kind, options) in enumerate(KINDS.items())
    }
    times: dict[tuple[str, int], list[float]] = {}
    for number in range(rounds):
        for count in counts:
            for kind, store in stores.items():
                start = time.perf_counter()
                with store.begin(write=True) as transaction:
                    for item in range(count):
                        transaction.put(f"{number} {count} {item}".encode(), record)
                times.setdefault((kind, count), []).append(1000 * (time.perf_counter() - start))
    for store in stores.values():
        store.close()
    return {kind: [median(times[kind, count]) for count in counts] for kind in KINDS}


def checkpoints(folder: Path, rounds: int) -> dict[str, float]:
    """Milliseconds of a copy in memory, of a checkpoint and of checking one."""
    weights = {"weights": torch.randn(PARAMETERS)}
    moments = {name: torch.randn(PARAMETERS) for name in ("mean", "square")}
    path = folder / "checkpoints"
    times: dict[str, list[float]] = {}

    def timed(name: str, work: Callable[[], object]) -> None:
        start = time.perf_counter()
        work()
        times.setdefault(name, []).append(1000 * (time.perf_counter() - start))

    for epoch in range(1, rounds + 1):
        snapshot = checkpoint.Snapshot(epoch, {}, weights, moments)
        timed("copy", lambda: [value.clone() for value in (*weights.values(), *moments.values())])
        timed("checkpoint", lambda kept=snapshot: checkpoint.save(path, kept))
        timed("check", lambda at=epoch: checkpoint.problem(path / f"{at:06d}"))
    return {name: median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("."))
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="amago-durability-", dir=options.folder))
    try:
        found = commits(folder, (1, 24), options.rounds)
        costs = checkpoints(folder, options.rounds)
    finally:
        shutil.rmtree(folder)
    print("| flushed at every commit | 1 trajectory | 24 trajectories |\n|---|---|---|")
    for kind, (one, many) in found.items():
        print(f"| {kind} | {one:.2g} ms | {many:.2g} ms |")
    print(json.dumps({name: f"{value:.3g} ms" for name, value in costs.items()}))


if __name__ == "__main__":
    main()
