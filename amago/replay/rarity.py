"""How often each goal is achieved in the trajectories that are kept, and what that is worth.

Counts are whole numbers that belong to one window of the store. A commit writes the counts
of each new trajectory beside it and the totals of the new window, in one transaction; what
leaves the window is subtracted by its own counts. So the totals are a function of the
window alone: the same after a restart, for every loader, and for a checkpoint's window.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from amago.goals import GoalSpec
from amago.types import Array, Trajectory

Frequency = Literal["step", "episode"]

_MIN_RARITY, _MAX_RARITY, _EXPONENT = 1e-3, 1e5, 4
_HEAD = struct.Struct("<QQQ")


@dataclass(frozen=True)
class GoalCounts:
    """Of some trajectories: in how many steps, and in how many of them, each goal occurs."""

    goals: Array  # [M, size], sorted by their bytes
    steps: Array  # [M] int64
    episodes: Array  # [M] int64
    num_steps: int = 0
    num_episodes: int = 0

    def to_bytes(self) -> bytes:
        head = _HEAD.pack(self.num_steps, self.num_episodes, len(self.goals))
        return head + b"".join(a.tobytes() for a in (self.goals, self.steps, self.episodes))


def no_counts(spec: GoalSpec) -> GoalCounts:
    none = np.zeros(0, np.int64)
    return GoalCounts(np.zeros((0, spec.size), spec.dtype), none, none)


def counts_from(buffer: bytes | memoryview, spec: GoalSpec) -> GoalCounts:
    """The inverse of to_bytes; the arrays own their memory."""
    num_steps, num_episodes, size = _HEAD.unpack_from(buffer)
    at = _HEAD.size
    goals = np.frombuffer(buffer, spec.dtype, size * spec.size, at).reshape(-1, spec.size).copy()
    numbers = np.frombuffer(buffer, np.int64, 2 * size, at + goals.nbytes).reshape(2, -1).copy()
    return GoalCounts(goals, numbers[0], numbers[1], num_steps, num_episodes)


def count(trajectory: Trajectory) -> GoalCounts:
    """One trajectory's counts. Row 0, the reset, is not a step."""
    assert trajectory.achieved is not None
    offsets, goals = trajectory.achieved
    goals = goals[int(offsets[1]) :]
    _, first, steps = np.unique(keys_of(goals), return_index=True, return_counts=True)
    once = np.ones(len(first), np.int64)
    return GoalCounts(goals[first], steps.astype(np.int64), once, trajectory.num_steps, 1)


def combine(added: Sequence[GoalCounts], removed: Sequence[GoalCounts] = ()) -> GoalCounts:
    """The counts of all that was added less what was removed."""
    parts = [*added, *removed]
    goals = np.concatenate([part.goals for part in parts])
    signs = np.repeat([1] * len(added) + [-1] * len(removed), [len(part.goals) for part in parts])
    _, first, inverse = np.unique(keys_of(goals), return_index=True, return_inverse=True)

    def total(name: str) -> Array:
        sums = np.zeros(len(first), np.int64)
        np.add.at(sums, inverse, signs * np.concatenate([getattr(p, name) for p in parts]))
        return sums

    steps, episodes = total("steps"), total("episodes")
    kept = episodes > 0
    return GoalCounts(
        goals[first][kept],
        steps[kept],
        episodes[kept],
        sum(p.num_steps for p in added) - sum(p.num_steps for p in removed),
        sum(p.num_episodes for p in added) - sum(p.num_episodes for p in removed),
    )


class Rarity:
    """Weights of goals: w = clip((-log10 f)^4, 1e-3, 1e5), f per step or per episode."""

    def __init__(self, counts: GoalCounts) -> None:
        self._keys = keys_of(counts.goals)
        # The last weight of each stands for goals that were never seen.
        self._weights = {
            "step": _rarity(counts.steps, counts.num_steps),
            "episode": _rarity(counts.episodes, counts.num_episodes),
        }

    def weights(self, goals: Array, frequency: Frequency) -> Array:
        """The weight of each goal [total, size] → [total]."""
        keys = keys_of(goals)
        weights = self._weights[frequency]
        if not len(self._keys):
            return weights.repeat(len(keys))
        at = self._keys.searchsorted(keys)
        at[at == len(self._keys)] = 0
        found: Array = np.where(self._keys[at] == keys, weights[at], weights[-1])
        return found


def _rarity(counts: Array, total: int) -> Array:
    """Weights [M+1] of goals that occur `counts` times in `total`, and of one that never does."""
    frequency = np.append(counts, 0) / max(total, 1)
    with np.errstate(divide="ignore"):
        decades = -np.log10(frequency)
    weights: Array = np.clip(decades**_EXPONENT, _MIN_RARITY, _MAX_RARITY)
    return weights


def keys_of(goals: Array) -> Array:
    """One sortable value per goal [M], equal exactly where goals are."""
    rows = np.ascontiguousarray(goals)
    width = rows.dtype.itemsize * rows.shape[1]
    if width > 8:
        whole: np.dtype[Any] = np.dtype((np.void, width))
        keys: Array = rows.view(whole).reshape(len(rows))
        return keys
    padded = np.zeros((len(rows), 8), np.uint8)
    padded[:, :width] = rows.view(np.uint8).reshape(len(rows), width)
    return padded.view(np.uint64).reshape(len(rows))
