"""Whether tenths of the horizon say how well an agent adapts."""

from __future__ import annotations

from collections.abc import Sequence


def tenths_tell(
    trials: float | None, fixed_trials: int | None, oracle: Sequence[float] | None
) -> bool:
    """True where trials fill a fixed horizon, or where the oracle earns in every tenth.

    `trials` is the mean number of trials of a rollout, `fixed_trials` the number that the
    settings ask for: then rollouts last as long as their trials do, and the trials themselves
    say how the agent adapts. In a rollout of one trial, tenths show only when the task pays.
    """
    fill_the_horizon = fixed_trials is None and (trials or 1.0) > 1.0
    return fill_the_horizon or (bool(oracle) and all(earned > 0 for earned in oracle or ()))
