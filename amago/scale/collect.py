"""How a run gets its experience: from its own process, from others, or from a Ray cluster."""

from __future__ import annotations

from amago.scale.collect_async import AsyncCollection
from amago.scale.collect_dispatch import Dispatch
from amago.scale.collect_fleet import Fleet
from amago.scale.collect_processes import ProcessFleet
from amago.scale.collect_sync import SyncCollection
from amago.scale.collector import Blueprint
from amago.scale.ray_cluster import Cluster
from amago.scale.ray_fleet import RayFleet
from amago.training.collection import Collection, LocalCollection
from amago.training.run import TrainingRun


def start_collection(run: TrainingRun) -> Collection:
    """What the scale settings of a run ask for."""
    settings = run.config.scale
    if not settings.collectors:
        return LocalCollection()
    fleet = _fleet(run)
    try:
        dispatch = Dispatch(fleet, settings.collectors, settings.timeout_seconds)
        if settings.mode == "async":
            return AsyncCollection(dispatch, run, settings.collectors)
        return SyncCollection(dispatch, settings.collectors)
    except BaseException:
        fleet.close()
        raise


def _fleet(run: TrainingRun) -> Fleet:
    # Torch's own choice of threads would be that of a process that has the machine to itself.
    alone = run.config.scale.mode == "sync" and run.config.scale.collectors == 1
    blueprint = Blueprint(
        run.config,
        run.seed,
        run.steps_per_epoch,
        run.config.run.threads or (0 if alone else 1),
        run.custom.parts,
        run.custom.make_env,
    )
    if not run.config.scale.address:
        return ProcessFleet(blueprint)
    cluster = Cluster(run.config.scale.address, run.config.scale.collectors)
    return RayFleet(blueprint, cluster)
