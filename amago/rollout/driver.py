"""Policy × environments → a stream of steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from amago.types import Array, Policy, Step, Timestep, VectorEnv

Perturb = Callable[[Timestep, Array], Array]


def drive(env: VectorEnv, policy: Policy, perturb: Perturb | None = None) -> Iterator[Step]:
    """Reset every lane, then act for ever; the consumer decides when to stop.

    Memory of a lane is the policy's: it clears it where `time` is 0.
    """
    step = Step(rows=env.reset())
    state = policy.initial_state(env.num_lanes)
    yield step
    while True:
        action, state = policy.act(step.rows, state)
        if perturb is not None:
            action = perturb(step.rows, action)
        step = env.step(action)
        yield step
