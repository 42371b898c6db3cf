"""Where the runs of a queue happen: beside it, or on the nodes of a cluster."""

from __future__ import annotations

from amago.scale.settings import ScaleSettings
from amago.sweep.jobs import Command


def placed(address: str, command: Command) -> Command:
    """The command line of each run, wrapped for the cluster at an address if there is one."""
    ScaleSettings(address=address)  # refuses what is no address
    if not address:
        return command
    from amago.scale.ray_cluster import Cluster
    from amago.scale.ray_job import on_cluster

    Cluster(address, 1).close()  # a cluster that does not answer should fail here, not per run
    return lambda job, step: on_cluster(address, command(job, step), job.run_dir)
