"""Learner ranks as Ray actors: Ray places them, and says which of them are lost."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from amago.config import Config
from amago.process import prepare_process
from amago.scale.learn_group import LearnerLostError, Seat, open_store
from amago.scale.learn_rank import follow
from amago.scale.ray_cluster import Cluster

_PLACING_SECONDS = 60.0
_GRACE_SECONDS = 10.0
_LOOK_SECONDS = 30.0
"""Ray may need this long to notice that a node is gone."""


class _LearnerActor:
    """A rank. Ray shows it no GPU but its own, which is therefore number 0."""

    def __init__(self, threads: int) -> None:
        prepare_process(threads)

    def node(self) -> str:
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def gpus(self) -> list[int]:
        import ray

        return [int(number) for number in ray.get_gpu_ids()]

    def follow(self, seat: Seat) -> None:
        follow(seat)


class RayRanks:
    """Ranks 1.. of a run, all of them placed before the run begins. The first rank is the driver,
    where the replay is; Ray does not count its cores."""

    def __init__(self, config: Config, device: torch.device) -> None:
        scale = config.scale
        count = scale.learners - 1
        # All ranks must use as many threads, or their sums differ in the last bit.
        self._threads = config.run.threads or 1
        torch.set_num_threads(self._threads)
        self._cluster = Cluster(scale.address, scale.collectors + count * self._threads)
        self._ray = self._cluster.ray
        self._num_gpus = int(device.type == "cuda")
        self._placement: Any = None
        self._holders: list[Any] = []
        self._actors: list[Any] = []
        self.nodes: list[str] = []
        """Where they are."""
        try:
            if self._num_gpus:
                self._reserve(device.index or 0)
            self._place(count)
            host = self._ray.util.get_node_ip_address()
            self.store = open_store(host)
            address = f"{host}:{self.store.port}"
            self.first = Seat(0, scale.learners, 0, address)
            self._ends = [
                actor.follow.remote(Seat(rank, scale.learners, 0, address))
                for rank, actor in enumerate(self._actors, start=1)
            ]
        except BaseException:
            self._end()
            raise

    def gone(self) -> bool:
        found, _ = self._ray.wait(self._ends, num_returns=1, timeout=0)
        return bool(found)

    def lost(self) -> str:
        self._ray.wait(self._ends, num_returns=1, timeout=_LOOK_SECONDS)
        found, _ = self._ray.wait(self._ends, num_returns=len(self._ends), timeout=0)
        said = []
        for end in found:
            number = self._ends.index(end)
            node = self.nodes[number][:8]
            said.append(f"learner {number + 1} on node {node} {self._why(end)}")
        return "; ".join(said) or "a learner does not answer any more"

    def close(self) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.wait(self._ends, num_returns=len(self._ends), timeout=_GRACE_SECONDS)
        self._end()

    def _place(self, count: int) -> None:
        """All or none: two runs that each have a part of the cluster would wait for each other."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        bundle = {"CPU": self._threads} | ({"GPU": 1} if self._num_gpus else {})
        group = self._ray.util.placement_group([bundle] * count, strategy="PACK")
        self._placement = group
        if not group.wait(_PLACING_SECONDS):
            found = self._ray.cluster_resources()
            has = ", ".join(f"{name} {found.get(name, 0):g}" for name in bundle)
            each = ", ".join(f"{name} {number}" for name, number in bundle.items())
            raise ValueError(
                f"expected room for {count} learners besides the first, each with {each}, got none "
                f"within {_PLACING_SECONDS:g} seconds on a Ray cluster that has {has} in all; use "
                "fewer --scale.learners or --run.threads, or add nodes"
            )
        self._actors = [
            self._make(PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=number))
            for number in range(count)
        ]
        self.nodes = self._ray.get([actor.node.remote() for actor in self._actors])

    def _reserve(self, own: int) -> None:
        """Let Ray give the driver's GPU to nobody else: an actor holds it."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = self._ray.get_runtime_context().get_node_id()
        holder = self._make(NodeAffinitySchedulingStrategy(node, soft=False), num_cpus=0)
        self._holders.append(holder)
        try:
            held = self._ray.get(holder.gpus.remote(), timeout=_PLACING_SECONDS)
        except self._ray.exceptions.RayError as error:
            raise ValueError(
                "expected a free GPU for the first learner on this node of the Ray cluster, got "
                f"none ({type(error).__name__}); wait for other jobs, or take --run.device cpu"
            ) from error
        if held != [own]:
            raise ValueError(
                f"expected Ray to hand out the GPU {own} of this node, where the first learner is, "
                f"got {held[0]}; take --run.device cuda:{held[0]}"
            )

    def _make(self, strategy: Any, **room: int) -> Any:
        options = {"num_cpus": self._threads, "num_gpus": self._num_gpus, **room}
        remote = self._ray.remote(max_restarts=0, scheduling_strategy=strategy, **options)
        return remote(_LearnerActor).remote(self._threads)

    def _why(self, end: Any) -> str:
        try:
            self._ray.get(end)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, LearnerLostError):
                return f"stopped: {error.cause}"
            return f"raised an exception:\n{error}"
        except self._ray.exceptions.RayError as error:
            return f"was lost with its process or node ({type(error).__name__})"
        return "has ended"

    def _end(self) -> None:
        for actor in self._actors + self._holders:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.kill(actor)
        if self._placement is not None:
            self._ray.util.remove_placement_group(self._placement)
        self._cluster.close()
