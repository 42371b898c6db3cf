"""Where the runs of a queue happen: beside it, or on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from amago.scale.settings import ScaleSettings
from amago.sweep.jobs import Command, Job, Step


def placed(address: str, command: Command, devices: Sequence[str] = ()) -> Command:
    """The command line of each run, wrapped for the cluster at an address if there is one.

    `devices` are GPUs of this machine that the queue hands out; a cluster has its own.
    """
    ScaleSettings(address=address)  # refuses what is no address
    if not address:
        return command
    if devices:
        raise ValueError(
            f"--devices names GPUs of this machine, got {' '.join(devices)} with --scale.address "
            f"{address}; on a cluster Ray hands them out: give --set run.device=cuda instead"
        )
    from amago.scale.ray_cluster import Cluster
    from amago.scale.ray_job import on_cluster

    Cluster(address, 1).close()  # a cluster that does not answer should fail here, not per run

    def start(job: Job, step: Step) -> list[str]:
        num_gpus = int(job.overrides.get("run.device", "").startswith("cuda"))
        return on_cluster(address, command(job, step), job.run_dir, num_gpus)

    return start
