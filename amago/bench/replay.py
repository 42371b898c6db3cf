"""What sampling from a large store costs beside learning, and whether reading it fills memory."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from amago.bench.conditions import Bench
from amago.bench.learner import LONG, MEDIUM
from amago.bench.processes import in_child
from amago.bench.results import Result, Target, duration
from amago.bench.synthetic import Size, make_batch, make_learner, random_trajectory, spec_of
from amago.bench.timing import interleave
from amago.process import memory_of_process
from amago.replay.sampler import Sampler
from amago.replay.store import TrajectoryStore

_NUM_TRAJECTORIES, _NUM_STEPS = 20_000, 500
_MOST_OF_LEARNING = 0.05
_MOST_OF_STORE = 0.1
"""Memory that grows by more than this share of the store's bytes grows with the store."""
_MB = 1e6


def run(
    bench: Bench,
    num_trajectories: int = _NUM_TRAJECTORIES,
    num_steps: int = _NUM_STEPS,
    sizes: Sequence[Size] = (LONG, MEDIUM),
) -> Iterator[Result]:
    about = f"{num_trajectories:,} trajectories of {num_steps} steps"
    bench.say(f"replay: writing {about}")
    with tempfile.TemporaryDirectory(prefix="amago-bench-") as folder:
        path = Path(folder) / "replay"
        with _fill(path, num_trajectories, num_steps) as store:
            yield from (_sampling(store, size, about, bench) for size in sizes)
        bench.say(f"replay: reading all of {about}")
        yield from _growth(path, about)


def _fill(path: Path, num_trajectories: int, num_steps: int) -> TrajectoryStore:
    """A store of noise, as collecting would have left it."""
    spec, rng = spec_of(LONG), np.random.default_rng(0)
    store = TrajectoryStore(path, spec, num_trajectories)
    remaining = num_trajectories
    while remaining:
        count = min(100, remaining)
        store.append([random_trajectory(spec, num_steps, rng) for _ in range(count)])
        remaining -= count
    return store


def _sampling(store: TrajectoryStore, size: Size, about: str, bench: Bench) -> Result:
    window = f"{size.batch_size}x{size.context_length}, d={size.model_dim}"
    bench.say(f"replay: sampling {window}")
    sampler = Sampler(store, size.batch_size, size.context_length, seed=0)
    numbers = itertools.count()
    learner, batch = make_learner(size), make_batch(size)
    contenders: dict[str, Callable[[], Any]] = {
        "sampler": lambda: sampler.batch(next(numbers)),
        "learner": lambda: learner.step(batch),
    }
    timings = interleave(contenders, bench.effort)
    sampling, learning = timings["sampler"], timings["learner"]
    return Result(
        "replay", f"{about}, batches of {window}", unit="ms/batch", yardstick="learner",
        ratio=sampling.seconds / learning.seconds, target=Target("ratio", "≤", _MOST_OF_LEARNING),
        **duration(sampling, learning, scale=1000.0),
    )  # fmt: skip


def _growth(path: Path, about: str) -> list[Result]:
    answer = in_child("read", {"path": str(path)})
    stored = (path / "data.mdb").stat().st_size
    labels = {"VmRSS": "resident memory", "RssAnon": "memory of the process's own"}
    return [
        Result(
            "replay", f"{about}, all read: {label}", answer[kind] / _MB, "MB more", "store",
            answer[kind] / stored, target=Target("ratio", "≤", _MOST_OF_STORE),
            note="includes the cached pages of the file" if kind == "VmRSS" else "",
        )
        for kind, label in labels.items()
    ]  # fmt: skip


def read_in_child(payload: dict[str, Any]) -> dict[str, Any]:
    """How resident memory grows from the first batch to the last trajectory of a store."""
    reader = TrajectoryStore.open_readonly(payload["path"])
    Sampler(reader, 24, _NUM_STEPS, seed=0).batch(0)
    before = memory_of_process()
    for trajectory_id in reader.ids.tolist():
        reader.read(trajectory_id)
    after = memory_of_process()
    return {kind: after[kind] - before[kind] for kind in ("VmRSS", "RssAnon")}
