"""What probes count beside success, in the words of those whose numbers stand beside ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from amago.rollout.scores import COMPARED
from amago.rollout.stats import RolloutRecord

Records = Sequence[RolloutRecord]
_STEPS = 500


def _doors(records: Records) -> float:
    """Doors opened per rollout of Dark Key-To-Door."""
    return float(np.mean([len(_opened(record)) for record in records]))


def _first_doors(records: Records) -> float:
    """Doors opened in the first 500 steps of a longer rollout."""
    return float(np.mean([sum(at <= _STEPS for at in _opened(record)) for record in records]))


def _last_doors(records: Records) -> float:
    """Doors opened in the last 500 steps of a longer rollout."""
    counts = [sum(at > record.length - _STEPS for at in _opened(record)) for record in records]
    return float(np.mean(counts))


def _opened(record: RolloutRecord) -> list[int]:
    """Steps after which doors were opened: a trial earns 1 for the key, then 1 for the door."""
    return [trial.end for trial in record.trials if trial.earned > 1.5]


def _goals(records: Records) -> float:
    """Share of the goals of an instruction that were reached."""
    return float(np.mean([record.total / (record.num_goals or 1) for record in records]))


def _answers(records: Records) -> float:
    """Share of right answers where returns go from -1, all wrong, to 1, all right."""
    return float(np.mean([(1.0 + record.total) / 2.0 for record in records]))


MEASURES: dict[str, Callable[[Records], float | None]] = {
    "success": COMPARED["success"].of,
    "doors": _doors,
    "first-doors": _first_doors,
    "last-doors": _last_doors,
    "goals": _goals,
    "answers": _answers,
}
"""By the names that probes use."""
