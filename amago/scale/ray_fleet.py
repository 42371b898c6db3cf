"""Collectors as Ray actors: Ray places them, and moves weights and harvests by reference."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from typing import Any

from amago.scale.collect_fleet import Event, Failed, Lost, Played, Ready
from amago.scale.collect_weights import Weights
from amago.scale.collector import Blueprint, Collector, Harvest, LaneShare
from amago.scale.ray_cluster import Cluster


class _CollectorActor(Collector):
    """A collector that can say that it is in place."""

    def ready(self) -> None: ...


@dataclass(frozen=True)
class _Answer:
    """Who will answer, and to what."""

    collector: int
    is_harvest: bool


class RayFleet:
    """Actors of one core each, spread over the nodes. Those that find no place yet are placed by
    Ray as soon as a node joins."""

    def __init__(self, blueprint: Blueprint, cluster: Cluster) -> None:
        self._cluster, self._ray = cluster, cluster.ray
        remote = self._ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")
        self._actor = remote(_CollectorActor)
        self._blueprint = self._ray.put(blueprint)
        self._numbers = itertools.count()
        self._actors: dict[int, Any] = {}
        self._answers: dict[Any, _Answer] = {}
        self._weights: Any = None

    def add(self) -> int:
        number = next(self._numbers)
        actor = self._actors[number] = self._actor.remote(self._blueprint)
        self._answers[actor.ready.remote()] = _Answer(number, is_harvest=False)
        return number

    def publish(self, weights: Weights) -> None:
        # One object: every node fetches it once, every collector of the node maps the same memory.
        self._weights = self._ray.put(weights)

    def send(self, collector: int, share: LaneShare) -> None:
        answer = self._actors[collector].collect.remote(share, self._weights)
        self._answers[answer] = _Answer(collector, is_harvest=True)

    def poll(self, timeout: float) -> list[Event]:
        references = list(self._answers)
        if not references:
            return []
        # Fetching is a part of waiting: what a node takes with it is lost, not half there.
        found, _ = self._ray.wait(references, num_returns=1, timeout=timeout)
        if found:
            found, _ = self._ray.wait(references, num_returns=len(references), timeout=0)
        return [self._receive(reference) for reference in found]

    def remove(self, collector: int) -> None:
        actor = self._actors.pop(collector)
        self._answers = {r: a for r, a in self._answers.items() if a.collector != collector}
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(actor)

    def close(self) -> None:
        for collector in list(self._actors):
            self.remove(collector)
        self._cluster.close()

    def _receive(self, reference: Any) -> Event:
        answer = self._answers.pop(reference)
        try:
            harvest: Harvest = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            self.remove(answer.collector)
            return Failed(answer.collector, str(error))
        except self._ray.exceptions.RayError as error:
            self.remove(answer.collector)
            return Lost(answer.collector, type(error).__name__)
        return Played(answer.collector, harvest) if answer.is_harvest else Ready(answer.collector)
