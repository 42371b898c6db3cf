"""Rows of running rollouts → finished Trajectories."""

from __future__ import annotations

from typing import Any

import numpy as np

from amago import ragged
from amago.types import Array, EnvSpec, Step, Timestep, Trajectory

_ROW_FIELDS = ("prev_action", "prev_reward", "first", "terminal")
_COMPACT: dict[str, np.dtype[Any]] = {
    "progress": np.dtype(np.uint8),
    "num_achieved": np.dtype(np.uint16),
}
"""What is stored in fewer bytes than a Timestep has; instructions are short."""


class Recorder:
    """Keeps the rows of every lane's open rollout in arrays [N, capacity, ...].

    Once `stop_accepting` was called, lanes that finish stay idle; `num_open` says how many
    rollouts are still going on.
    """

    def __init__(self, spec: EnvSpec, tasks: tuple[str, ...]) -> None:
        self.spec, self.tasks = spec, tasks
        self.lengths = np.zeros(len(tasks), np.int64)
        self.accepting = True
        self._arrays: dict[str, Array] = {}
        self._lanes = np.arange(len(tasks))
        self._world_seed = np.zeros(len(tasks), np.int64)
        if spec.goals is not None:
            size, dtype = spec.goals.size, spec.goals.dtype
            self._instruction = np.zeros((len(tasks), spec.goals.max_goals, size), dtype)
            self._num_goals, self._num_achieved = np.zeros((2, len(tasks)), np.int64)
            self._achieved = np.zeros((len(tasks), 64, size), dtype)

    @property
    def num_open(self) -> int:
        return int((self.lengths > 0).sum())

    def add(self, step: Step) -> list[Trajectory]:
        """Take one round trip's rows; return the rollouts that it ended."""
        finished: list[Trajectory] = []
        for rows, lanes in step.parts():
            keep = (self.lengths[lanes] > 0) | (rows.time == 0 if self.accepting else False)
            if not keep.all():
                rows, lanes = rows.select(keep), lanes[keep]
            self._append(rows, lanes)
            finished += [self._close(lane) for lane in lanes[rows.last]]
        return finished

    def stop_accepting(self) -> None:
        """Begin no more rollouts, and drop those that have not made a step."""
        self.accepting = False
        self.lengths[self.lengths == 1] = 0

    def cut(self) -> list[Trajectory]:
        """End every open rollout where it stands, as truncated."""
        return [self._close(lane) for lane in self._lanes[self.lengths > 1]]

    def _append(self, rows: Timestep, lanes: Array) -> None:
        if not len(lanes):
            return
        fields = {f"obs/{key}": value for key, value in rows.obs.items()}
        fields |= {name: getattr(rows, name) for name in _ROW_FIELDS}
        if self.spec.goals is not None:
            fields |= self._append_goals(rows, lanes)
        at = self.lengths[lanes]
        self._make_room(fields, int(at.max()) + 1)
        for name, value in fields.items():
            self._arrays[name][lanes, at] = value
        self._world_seed[lanes] = rows.world_seed
        self.lengths[lanes] += 1

    def _append_goals(self, rows: Timestep, lanes: Array) -> dict[str, Array]:
        """Keep all achieved goals of each lane in one run; how many came with each row."""
        assert rows.achieved is not None and rows.num_goals is not None
        begins = self.lengths[lanes] == 0
        self._num_achieved[lanes[begins]] = 0
        self._instruction[lanes], self._num_goals[lanes] = rows.instruction, rows.num_goals
        offsets, goals = rows.achieved
        counts = ragged.counts_of(rows.achieved)
        most = int((self._num_achieved[lanes] + counts).max())
        if most > self._achieved.shape[1]:
            self._achieved = _grown(self._achieved, max(most, 2 * self._achieved.shape[1]))
        owner = ragged.rows_of(rows.achieved)
        rank = np.arange(len(goals)) - offsets[owner]
        self._achieved[lanes[owner], self._num_achieved[lanes[owner]] + rank] = goals
        self._num_achieved[lanes] += counts
        assert rows.progress is not None
        return {"progress": rows.progress, "num_achieved": counts}

    def _close(self, lane: int) -> Trajectory:
        rows = {
            name: array[lane, : self.lengths[lane]].copy() for name, array in self._arrays.items()
        }
        self.lengths[lane] = 0
        obs = {name[4:]: rows.pop(name) for name in list(rows) if name.startswith("obs/")}
        return Trajectory(
            obs,
            rows["prev_action"],
            rows["prev_reward"],
            rows["first"],
            rows["terminal"],
            world_seed=int(self._world_seed[lane]),
            task=self.tasks[lane],
            **(self._close_goals(lane, rows) if self.spec.goals is not None else {}),
        )

    def _close_goals(self, lane: int, rows: dict[str, Array]) -> dict[str, Any]:
        offsets, goals = ragged.of_counts(
            rows["num_achieved"], self._achieved[lane, : self._num_achieved[lane]].copy()
        )
        return {
            "instruction": self._instruction[lane, : self._num_goals[lane]].copy(),
            "progress": rows["progress"],
            "achieved": (offsets.astype(np.min_scalar_type(len(goals))), goals),
        }

    def _make_room(self, fields: dict[str, Array], length: int) -> None:
        if not self._arrays:
            capacity = min((self.spec.horizon or 255) + 1, 4096)
            for name, value in fields.items():
                self._arrays[name] = self._empty(name, value, max(capacity, length))
        capacity = next(iter(self._arrays.values())).shape[1]
        if length > capacity:
            self._arrays = {n: _grown(old, 2 * capacity) for n, old in self._arrays.items()}

    def _empty(self, name: str, value: Array, capacity: int) -> Array:
        dtype = _COMPACT.get(name, value.dtype)
        if name == "prev_action":
            dtype = self.spec.action.stored_dtype
        return np.empty((len(self.tasks), capacity, *value.shape[1:]), dtype)


def _grown(old: Array, capacity: int) -> Array:
    """Arrays [N, C, ...] with room for more."""
    new = np.empty((old.shape[0], capacity, *old.shape[2:]), old.dtype)
    new[:, : old.shape[1]] = old
    return new
