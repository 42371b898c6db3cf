"""Collectors and learners on a Ray cluster of two nodes of this machine: placed, killed, moved."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from test_collect_helpers import AtEpoch, contents, endless, rows, tiny, trained, trajectories
from test_collect_sweep import WRITES

from amago import api
from amago.scale import ray_learners
from amago.scale.learn_group import LearnerLostError
from amago.scale.ray_fleet import RayFleet
from amago.scale.ray_job import on_cluster
from amago.scale.ray_learners import RayRanks

ray = pytest.importorskip("ray", reason="no ray; `pip install 'amago[ray]'` installs it")

pytestmark = pytest.mark.usefixtures("no_curves")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    # Workers of a busy machine would otherwise wait for all other processes (nice 15).
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        small = {"object_store_memory": 100 << 20, "include_dashboard": False}
        nodes = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 2, **small}
        )
        nodes.add_node(num_cpus=1, object_store_memory=100 << 20)
        ray.init(address=nodes.address, logging_level="error", log_to_driver=False)
        yield nodes
        ray.shutdown()
        nodes.shutdown()


@pytest.fixture
def fleets(monkeypatch: pytest.MonkeyPatch) -> list[RayFleet]:
    """The fleets that a test makes."""
    made: list[RayFleet] = []
    original = RayFleet.__init__

    def remember(self: RayFleet, *arguments: Any) -> None:
        original(self, *arguments)
        made.append(self)

    monkeypatch.setattr(RayFleet, "__init__", remember)
    return made


def test_a_killed_collector_and_a_killed_node_change_nothing(
    cluster: Any, fleets: list[RayFleet], tmp_path: Path
) -> None:
    calm = contents(trained(tmp_path / "calm", tiny(scale__collectors=2, run__epochs=4)))
    second = next(iter(cluster.worker_nodes))

    def kill_collector() -> None:
        actor = next(iter(fleets[0]._actors.values()))
        pid = ray.get(actor.__ray_call__.remote(lambda _: os.getpid()))
        os.kill(pid, signal.SIGKILL)

    def kill_node() -> None:
        cluster.remove_node(second, allow_graceful=False)

    view = AtEpoch({1: kill_collector, 2: kill_node})
    config = tiny(scale__collectors=2, scale__address=cluster.address, run__epochs=4)
    api.train(config, 3, tmp_path / "rough", view=view)
    rough = contents(tmp_path / "rough")
    assert rough == calm
    timing = rows(tmp_path / "rough" / "timing.jsonl")
    assert timing[-1]["collectors_lost"] >= 1 and timing[-1]["collectors"] >= 1


def test_a_collector_that_finds_no_place_joins_when_a_node_does(
    cluster: Any, tmp_path: Path
) -> None:
    config = tiny(scale__collectors=3, scale__address=cluster.address, run__epochs=400)
    joined: list[float] = []

    class Grows(api.Silent):
        def epoch(self, metrics: dict[str, Any], timing: dict[str, Any]) -> None:
            joined.append(timing["collectors"])
            if metrics["epoch"] == 1:
                cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
            if timing["collectors"] == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        api.train(config, 3, tmp_path / "run", view=Grows())
    assert joined[0] <= 2 and joined[-1] == 3


def test_learners_on_another_node_learn_the_same_and_its_loss_is_a_clean_stop(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    # So many epochs that the loss is noticed before the last one.
    both = {"scale__collectors": 2, "scale__learners": 2, "run__epochs": 15}
    calm = contents(trained(tmp_path / "calm", tiny(**both)))
    (second,) = cluster.worker_nodes
    placed: list[str] = []
    make = RayRanks.__init__
    # Rank 1 fits on the second node alone; then there is room for collectors.
    holder = _occupied(cluster.head_node, 2)

    def remember(self: RayRanks, *arguments: Any) -> None:
        make(self, *arguments)
        placed.extend(self.nodes)
        ray.kill(holder)

    monkeypatch.setattr(RayRanks, "__init__", remember)
    view = AtEpoch({2: lambda: cluster.remove_node(second, allow_graceful=False)})
    config, folder = tiny(**both, scale__address=cluster.address), tmp_path / "run"
    with pytest.raises(LearnerLostError, match=r"learner 1 on node .* was lost with its"):
        api.train(config, 3, folder, view=view)
    assert placed == [second.node_id]
    kept = re.search(r"the checkpoint of epoch (\d+) is kept; go on with: (.*)", caplog.text)
    assert kept is not None and kept[2] == f"amago resume {folder}"
    assert 2 <= int(kept[1]) < 15
    api.resume(folder, set={"scale.address": ""})
    assert contents(folder) == calm, "as many processes, placed elsewhere: the same bit for bit"
    assert rows(folder / "timing.jsonl")[-1]["learners"] == 2


def _occupied(node: Any, cores: int) -> Any:
    """An actor that takes up room of a node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    class Holder:
        def ready(self) -> None: ...

    strategy = NodeAffinitySchedulingStrategy(node.node_id, soft=False)
    holder = ray.remote(num_cpus=cores, scheduling_strategy=strategy)(Holder).remote()
    ray.get(holder.ready.remote())
    return holder


def test_a_killed_driver_leaves_no_actor_behind_and_its_run_goes_on(
    cluster: Any, tmp_path: Path
) -> None:
    assert _all_cores_are_free(), "the actors of the other tests have ended"
    folder = tmp_path / "run"
    command = endless(folder, "--scale.address", cluster.address)
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 240
        while not (folder / "checkpoints" / "latest.json").exists():
            assert time.monotonic() < end and driver.poll() is None
            time.sleep(0.1)
    finally:
        driver.kill()
        driver.wait()
    assert _all_cores_are_free(), "the actors ended with their driver"
    before = trajectories(folder)
    api.resume(folder, epochs=len(before) // 4 + 2, trust=True)
    after = trajectories(folder)
    assert after[: len(before)] == before and len(set(after)) == len(after)


@pytest.mark.slow
def test_every_learner_gets_a_gpu_of_its_own_and_the_first_keeps_its(cluster: Any) -> None:
    """GPUs that Ray believes in; nobody uses them."""
    config = tiny(scale__learners=2, scale__address=cluster.address)
    with pytest.raises(
        ValueError, match=r"the GPU 1 of this node.*got 0; take --run.device cuda:0"
    ):
        RayRanks(config, torch.device("cuda", 1))
    ranks = RayRanks(config, torch.device("cuda", 0))
    try:
        assert ranks.nodes == [cluster.head_node.node_id]
        assert _becomes(lambda: ray.available_resources().get("GPU", 0) == 0)
    finally:
        ranks._end()
    assert _becomes(lambda: ray.available_resources().get("GPU") == 2)


def test_learners_that_find_no_room_say_what_the_cluster_has(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_learners, "_PLACING_SECONDS", 2.0)
    config = tiny(scale__learners=99, scale__address=cluster.address, replay__batch_size=99)
    with pytest.raises(
        ValueError, match=r"room for 98 learners .* cluster that has CPU [23] in all"
    ):
        RayRanks(config, torch.device("cpu"))


def test_a_run_of_a_sweep_is_played_on_a_node_and_comes_back(cluster: Any, tmp_path: Path) -> None:
    folder = tmp_path / "seed-0"
    command = on_cluster(cluster.address, [sys.executable, "-c", WRITES, str(folder)], folder, 1)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("said False sees ['0']\n", "said False sees ['1']\n")
    assert (folder / "result.json").is_file()


def _all_cores_are_free() -> bool:
    return _becomes(lambda: ray.available_resources().get("CPU") == ray.cluster_resources()["CPU"])


def _becomes(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.5)
    return False
