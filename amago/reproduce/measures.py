"""What probes count beside success, in the words of those whose numbers stand beside ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from amago.rollout.scores import COMPARED
from amago.rollout.stats import RolloutRecord

Records = Sequence[RolloutRecord]
_LAST_STEPS = 500


def _doors(records: Records, since: int | None = None) -> float:
    """Doors opened per rollout of Dark Key-To-Door, or in its last steps alone.

    A trial earns 1 for the key and 1 for the door, and a door needs its key.
    """
    counts = [
        sum(
            trial.earned > 1.5 and (since is None or trial.end > record.length - since)
            for trial in record.trials
        )
        for record in records
    ]
    return float(np.mean(counts))


def _goals(records: Records) -> float:
    """Share of the goals of an instruction that were reached."""
    return float(np.mean([record.total / (record.num_goals or 1) for record in records]))


def _answers(records: Records) -> float:
    """Share of right answers where returns go from -1, all wrong, to 1, all right."""
    return float(np.mean([(1.0 + record.total) / 2.0 for record in records]))


MEASURES: dict[str, Callable[[Records], float | None]] = {
    "success": COMPARED["success"].of,
    "doors": _doors,
    "last-doors": lambda records: _doors(records, _LAST_STEPS),
    "goals": _goals,
    "answers": _answers,
}
"""By the names that probes use."""
