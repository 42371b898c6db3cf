"""The ways to hold N lanes behind `amago.types.VectorEnv`."""

from __future__ import annotations

from amago.envs.gym_vector import GymVector
from amago.envs.in_process import InProcessVector
from amago.envs.lanes import world_seed
from amago.envs.native import NativeVector
from amago.envs.workers import WorkerVector

__all__ = ["GymVector", "InProcessVector", "NativeVector", "WorkerVector", "world_seed"]
