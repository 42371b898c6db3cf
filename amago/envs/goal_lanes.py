"""The instruction fields of Timesteps, put together from the infos of single environments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from amago import ragged
from amago.envs.instructions import ACHIEVED, INSTRUCTION, PROGRESS, achieved_goals
from amago.goals import GoalSpec
from amago.types import Array

_Info = Mapping[str, Any]
_Fields = dict[str, Any]


class GoalLanes:
    """What each of N lanes is asked for and has done; nothing at all without a GoalSpec."""

    def __init__(self, spec: GoalSpec | None, num_lanes: int) -> None:
        self._spec = spec
        if spec is not None:
            self._instruction = np.zeros((num_lanes, spec.max_goals, spec.size), spec.dtype)
            self._num_goals, self._progress = np.zeros((2, num_lanes), np.int64)
            self._achieved = ragged.empty(num_lanes, spec.size, spec.dtype)

    def begin(self, lanes: Array, infos: Iterable[_Info]) -> _Fields:
        """Take the instructions that some lanes reported when they were reset."""
        if self._spec is None:
            return {}
        for lane, info in zip(lanes, infos, strict=True):
            instruction = self._spec.instruction(_reported(info, INSTRUCTION))
            self._instruction[lane] = 0
            self._instruction[lane, : len(instruction)] = instruction
            self._num_goals[lane] = len(instruction)
        self._progress[lanes] = 0
        self._achieved = ragged.clear(self._achieved, lanes)
        return self._fields()

    def step(self, infos: Sequence[_Info]) -> _Fields:
        """Take what every lane reported after a step."""
        if self._spec is None:
            return {}
        goals = [achieved_goals(self._spec, info) for info in infos]
        counts = np.array([len(achieved) for achieved in goals])
        self._achieved = ragged.of_counts(counts, np.concatenate(goals))
        self._progress = np.array([_reported(info, PROGRESS) for info in infos], np.int64)
        return self._fields()

    def _fields(self) -> _Fields:
        return {
            "instruction": self._instruction.copy(),
            "num_goals": self._num_goals.copy(),
            "progress": self._progress.copy(),
            "achieved": self._achieved,
        }


def lane_infos(info: _Info, num_lanes: int) -> list[_Info]:
    """What a Gymnasium vector's info says about goals, lane by lane."""
    present = {
        key: info.get(f"_{key}", np.ones(num_lanes, np.bool_))
        for key in (INSTRUCTION, PROGRESS, ACHIEVED)
        if key in info
    }
    return [
        {key: info[key][lane] for key, mask in present.items() if mask[lane]}
        for lane in range(num_lanes)
    ]


def _reported(info: _Info, key: str) -> Any:
    if key not in info:
        raise ValueError(
            f"expected info[{key!r}] from an environment with goals, got the keys {sorted(info)}; "
            "wrap it in amago.envs.instructions.FollowInstructions"
        )
    return info[key]
