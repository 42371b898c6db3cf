"""How many cores of its machine a run learns on."""

from __future__ import annotations

import os

import torch

from amago.config import Config
from amago.process import prepare_process


def prepare_learner(config: Config) -> None:
    """Prepare the process of a run. Where collectors play beside it all the time, torch's own
    choice of threads leaves them their cores: threads that wait for one another while they share
    cores with others make an update many times as slow."""
    prepare_process(config.run.threads)
    if not config.run.threads:
        torch.set_num_threads(min(torch.get_num_threads(), cores_to_learn(config)))


def cores_to_learn(config: Config) -> int:
    """Cores of this machine that its collectors leave to learners."""
    scale = config.scale
    here = scale.mode == "async" and scale.address in ("", "local")
    return max(1, (os.cpu_count() or 1) - (scale.collectors if here else 0))
