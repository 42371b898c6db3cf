"""Policy × environments → a stream of steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from amago.types import Array, Policy, Step, Timestep, VectorEnv

_Perturb = Callable[[Timestep, Array, Array], Array]
"""(rows, actions, their lanes) → the actions that are executed."""


def drive(
    env: VectorEnv,
    policy: Policy,
    perturb: _Perturb | None = None,
    idle: Array | None = None,
) -> Iterator[Step]:
    """Reset every lane, then act for ever; the consumer decides when to stop.

    Memory of a lane is the policy's: it clears it where `time` is 0. `idle` [N] belongs to the
    consumer, who marks lanes there as it goes: they are neither acted for nor stepped any more.
    """
    step = Step(rows=env.reset())
    state = policy.initial_state(env.num_lanes)
    lanes = np.arange(env.num_lanes)
    yield step
    while True:
        rows = step.rows
        if idle is not None and idle.any():
            going_on = np.flatnonzero(~idle[lanes])
            if len(going_on) < len(lanes):
                lanes, state = lanes[going_on], policy.select(state, going_on)
            rows = rows.select(lanes)
        action, state = policy.act(rows, state)
        if perturb is not None:
            action = perturb(rows, action, lanes)
        if len(lanes) < env.num_lanes:
            some, action = action, np.zeros((env.num_lanes, *action.shape[1:]), action.dtype)
            action[lanes] = some
        step = env.step(action, idle)
        yield step
