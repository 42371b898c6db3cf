"""What Ray itself costs: arrays through its object store, and a call that brings a share back."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from amago.bench.conditions import Bench
from amago.bench.results import Result, duration, rate
from amago.bench.timing import interleave
from amago.replay.record import Record
from amago.scale.ray_cluster import Cluster
from amago.types import Array

_CALLS = 20
_MEGABYTES = (1, 10, 100)


class _Plays:
    """A collector that always brings in the same share."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = list(records)

    def collect(self, weights: Array) -> list[Record]:
        return self._records


def run(bench: Bench, records: Sequence[Record]) -> tuple[list[Result], float]:
    """All results, and the seconds that Ray needs for one share."""
    bench.say("scale: starting Ray")
    with contextlib.closing(Cluster("local", 1)) as cluster:
        ray = cluster.ray
        results = [_object_store(ray, megabytes, bench) for megabytes in _MEGABYTES]
        actor = ray.remote(num_cpus=1)(_Plays).remote(list(records))
        weights = ray.put(np.zeros(1_000_000, np.uint8))
        ray.get(actor.collect.remote(weights))
        timing = interleave({"call": partial(_call, ray, actor, weights)}, bench.effort)["call"]
        about = f"Ray: a share of {len(records)} rollouts of 8 numbers, called for and fetched"
        call = duration(timing, scale=1000.0 / _CALLS)
        results.append(Result("scale", about, unit="ms", **call, note=f"{_CALLS} calls at a time"))
    return results, timing.seconds / _CALLS


def _object_store(ray: Any, megabytes: int, bench: Bench) -> Result:
    """Arrays from a driver to itself: one copy in, none out."""
    array = np.zeros(megabytes * 1_000_000, np.uint8)
    timing = interleave({"store": partial(_through, ray, array)}, bench.effort)["store"]
    return Result("scale", f"object store, {megabytes} MB", unit="MB/s", **rate(megabytes, timing))


def _through(ray: Any, array: Array) -> Array:
    fetched: Array = ray.get(ray.put(array))
    return fetched


def _call(ray: Any, actor: Any, weights: Any) -> None:
    ray.get([actor.collect.remote(weights) for _ in range(_CALLS)])
