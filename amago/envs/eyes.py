"""What the player of lane 0 perceives, whichever kind of lanes play it."""

from __future__ import annotations

from amago.envs.in_process import InProcessVector
from amago.envs.native import NativeVector
from amago.envs.tasks.base import Eyes, Task
from amago.types import VectorEnv


def first_lane_task(lanes: VectorEnv) -> Task | None:
    """The native task behind lane 0, if there is one in this process."""
    task = None
    if isinstance(lanes, NativeVector):
        task = lanes.task
    elif isinstance(lanes, InProcessVector):
        task = getattr(lanes.first_env.unwrapped, "task", None)
    return task if isinstance(task, Task) else None


def open_eyes(lanes: VectorEnv) -> Eyes | None:
    """Eyes of lane 0 that open now; None where its picture shows no more than it perceives."""
    task = first_lane_task(lanes)
    return None if task is None else task.eyes(0)
