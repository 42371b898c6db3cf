"""The rows of several vectors, one after the other, as those of one vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from amago import ragged
from amago.types import Step, Timestep


class Joiner:
    """Joins what neighbouring vectors return.

    Once one of them has reported success, silence of the others means False.
    """

    def __init__(self, first_lanes: Sequence[int], reward_scales: Sequence[float] | None = None):
        """Of every vector: the lane that its own lane 0 becomes, and a factor for its rewards."""
        self._first_lanes, self._reward_scales = first_lanes, reward_scales
        self._reports_success = False

    def rows(self, parts: Sequence[Timestep]) -> Timestep:
        """The rows of all vectors."""
        return self._join(parts, range(len(parts)))

    def step(self, steps: Sequence[Step]) -> Step:
        """The step of all vectors, with the final rows of those that have some."""
        rows = self.rows([step.rows for step in steps])
        finals = {number: step.final for number, step in enumerate(steps) if step.final is not None}
        if not finals:
            return Step(rows)
        lanes = [self._first_lanes[number] + steps[number].final_lanes for number in finals]
        return Step(rows, self._join([*finals.values()], [*finals]), np.concatenate(lanes))

    def _join(self, parts: Sequence[Timestep], vectors: Sequence[int]) -> Timestep:
        if self._reward_scales is not None:
            scales = [self._reward_scales[number] for number in vectors]
            parts = [
                replace(part, prev_reward=(part.prev_reward * scale).astype(np.float32))
                for part, scale in zip(parts, scales, strict=True)
            ]
        if self._reports_success or any(part.success is not None for part in parts):
            self._reports_success = True
            parts = [_with_success(part) for part in parts]
        return _concatenate(parts)


def _with_success(part: Timestep) -> Timestep:
    if part.success is not None:
        return part
    return replace(part, success=np.zeros(len(part), np.bool_))


def _concatenate(parts: Sequence[Timestep]) -> Timestep:
    columns: dict[str, Any] = {
        "obs": {key: np.concatenate([part.obs[key] for part in parts]) for key in parts[0].obs}
    }
    for field in fields(Timestep):
        values = [getattr(part, field.name) for part in parts]
        if field.name != "obs":
            join: Any = ragged.concatenate if field.name == "achieved" else np.concatenate
            columns[field.name] = None if values[0] is None else join(values)
    return Timestep(**columns)
