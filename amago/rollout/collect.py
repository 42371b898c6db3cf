"""One epoch's experience, from the stream of steps to the replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from amago.rollout.driver import drive
from amago.rollout.exploration import Exploration
from amago.rollout.recorder import Recorder
from amago.rollout.stats import RolloutRecord, RolloutTracker
from amago.types import Policy, Trajectory, VectorEnv

_Sink = Callable[[Sequence[Trajectory]], None]


def collect(
    env: VectorEnv, policy: Policy, exploration: Exploration, steps: int, sink: _Sink
) -> tuple[list[RolloutRecord], int]:
    """At least `steps` steps per lane, handed over rollout by rollout.

    Ends when the budget is met and every open rollout has ended; lanes without one rest until
    then. Rollouts of an environment without a known horizon are cut at the budget as truncated.
    A curriculum of the environment's own moves on at the end, for all lanes alike. Returns the
    records of the finished rollouts and the number of recorded steps.
    """
    recorder, tracker = Recorder(env.spec, env.tasks), RolloutTracker(env)
    records: list[RolloutRecord] = []
    recorded = 0
    idle = np.zeros(env.num_lanes, np.bool_)
    for taken, step in enumerate(drive(env, policy, exploration, idle)):
        finished = recorder.add(step)
        records += [record for record in tracker.add(step) if not idle[record.lane]]
        if taken >= steps and recorder.accepting:
            recorder.stop_accepting()
            if env.spec.horizon is None:
                finished += recorder.cut()
        if finished:
            recorded += sum(trajectory.num_steps for trajectory in finished)
            sink(finished)
        if not recorder.accepting:
            idle[:] = recorder.lengths == 0
        if idle.all():
            env.curriculum = env.curriculum  # all lanes go on from where the furthest one is
            return records, recorded
    raise AssertionError("a driver never ends by itself")
