"""Hindsight instruction relabeling (paper Algorithm 1, appendix B).

A rollout that left goals open is shown again as one that was asked for some of what it
happened to achieve. Rewards, progress and the end are what `amago.goals.follow` says.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from amago.goals import follow
from amago.replay.rarity import Frequency, Rarity
from amago.replay.reader import TrajectoryReader
from amago.replay.settings import RelabelSettings
from amago.replay.window import cut
from amago.types import Array, Trajectory

_SMALL = 1e-5
_TOP = 5
SCHEMES: tuple[tuple[float, Callable[[Array], Array]], ...] = (
    (0.6, lambda w: np.where(w >= np.partition(w, -_TOP)[-_TOP], w, _SMALL)),
    (0.2, np.ones_like),
    (0.1, lambda w: w - w.min() + _SMALL),
    (0.1, lambda w: np.maximum(w - np.median(w), _SMALL)),
)
"""How a trajectory's draws turn rarity into odds, and how often: the rarest five (those that tie
with the fifth, too), all alike, above the least rare, above the median."""
_CHANCES = list(accumulate(chance for chance, _ in SCHEMES))[:-1]


@dataclass(frozen=True)
class Choice:
    """Goals taken from a rollout in hindsight, in the order in which they were achieved."""

    rows: Array  # [h]
    goals: Array  # [h, goal size]


class Hindsight(NamedTuple):
    """One relabeling: what it began with, what it chose there, and what came of it."""

    before: Trajectory
    choice: Choice
    after: Trajectory


class Relabeler:
    """A Sampler's transform: another instruction for a trajectory, as the settings say."""

    def __init__(self, settings: RelabelSettings, rarity: Rarity | None) -> None:
        """`rarity` belongs to a window of the store; None draws all goals alike."""
        self._settings = settings
        self._rarity = rarity if settings.importance_sampling else None

    def __call__(self, trajectory: Trajectory, rng: np.random.Generator) -> Trajectory:
        return self.look_back(trajectory, rng).after

    def look_back(self, trajectory: Trajectory, rng: np.random.Generator) -> Hindsight:
        """Relabel a trajectory and tell how; where nothing is chosen it stays what it was."""
        before = self.begin(trajectory)
        choice = self.choose(before, rng)
        after = relabeled(before, merged(before, choice)) if len(choice.rows) else before
        return Hindsight(before, choice, after)

    def begin(self, trajectory: Trajectory) -> Trajectory:
        """What is relabeled: the trajectory, or what it is when asked for its first goal only."""
        if trajectory.instruction is None:
            raise ValueError(
                "expected a trajectory with an instruction, got one without; relabeling is for "
                "environments whose spec has goals"
            )
        if self._settings.multi_goal or len(trajectory.instruction) == 1:
            return trajectory
        return relabeled(trajectory, trajectory.instruction[:1])

    def choose(self, trajectory: Trajectory, rng: np.random.Generator) -> Choice:
        """Draw steps without replacement, then one achieved goal of each; maybe none at all."""
        assert trajectory.achieved is not None
        offsets, goals = trajectory.achieved
        count = self._num_hindsight(trajectory, rng)
        rows = candidates(trajectory) if count else np.zeros(0, np.int64)
        if not len(rows):
            return Choice(rows, goals[:0])
        if self._rarity is None:
            rows = np.sort(rng.permutation(rows)[:count])
            edges = offsets.astype(np.int64)
            return Choice(rows, goals[rng.integers(edges[rows], edges[rows + 1])])
        frequency: Frequency = "step" if rng.random() < 0.5 else "episode"
        scheme = bisect(_CHANCES, rng.random())
        weights = self._rarity.weights(goals, frequency)
        sums = row_sums(weights, offsets)[rows]
        chosen: list[tuple[int, int]] = []
        for _ in range(min(count, len(rows))):
            row = int(rows[draw(sums, scheme, rng)])
            first, stop = int(offsets[row]), int(offsets[row + 1])
            goal = first if stop == first + 1 else first + draw(weights[first:stop], scheme, rng)
            chosen.append((row, goal))
            left = rows != row
            rows, sums = rows[left], sums[left]
        chosen.sort()
        return Choice(
            np.array([row for row, _ in chosen], np.int64), goals[[goal for _, goal in chosen]]
        )

    def _num_hindsight(self, trajectory: Trajectory, rng: np.random.Generator) -> int:
        """h of Algorithm 1: how many goals are put in, before the limit of the candidates."""
        assert trajectory.instruction is not None and trajectory.progress is not None
        open_goals = len(trajectory.instruction) - int(trajectory.progress[-1])
        if self._settings.relabel == "none" or open_goals == 0:
            return 0
        return open_goals if self._settings.relabel == "all" else int(rng.integers(open_goals + 1))


class StoreRelabeler:
    """Relabels with the rarity of goals in the store as it is when a Sampler begins."""

    def __init__(self, store: TrajectoryReader, settings: RelabelSettings) -> None:
        if store.goals is None:
            raise ValueError(
                "expected a store of trajectories with instructions, got one of an environment "
                "without goals; sample it without relabeling"
            )
        self._store, self._settings = store, settings

    def now(self) -> Relabeler:
        """The transform of the store's present window."""
        weighted = self._settings.importance_sampling and self._settings.relabel != "none"
        return Relabeler(self._settings, self._store.rarity() if weighted else None)

    def __call__(self, trajectory: Trajectory, rng: np.random.Generator) -> Trajectory:
        return self.now()(trajectory, rng)


def row_sums(weights: Array, offsets: Array) -> Array:
    """The sum of the weights of each row, [T+1]."""
    sums = np.zeros(len(offsets) - 1)
    held = offsets[1:] > offsets[:-1]
    if held.any():
        sums[held] = np.add.reduceat(weights, offsets[:-1][held].astype(np.intp))
    return sums


def candidates(trajectory: Trajectory) -> Array:
    """Rows whose step achieved some goal but did not complete one that was asked for."""
    assert trajectory.achieved is not None and trajectory.progress is not None
    offsets, progress = trajectory.achieved[0], trajectory.progress
    free = (offsets[2:] > offsets[1:-1]) & (progress[1:] == progress[:-1])
    rows: Array = 1 + free.nonzero()[0]
    return rows


def completed_rows(trajectory: Trajectory) -> Array:
    """The row at which each completed goal was completed."""
    assert trajectory.progress is not None
    rows: Array = 1 + (trajectory.progress[1:] > trajectory.progress[:-1]).nonzero()[0]
    return rows


def merged(trajectory: Trajectory, choice: Choice) -> Array:
    """The new instruction: what was completed and chosen in the order in which it happened,
    then what was asked for and is still open, up to the length of the old one."""
    assert trajectory.instruction is not None
    asked, completed = trajectory.instruction, completed_rows(trajectory)
    order = np.concatenate([completed, choice.rows]).argsort()
    happened = np.concatenate([asked[: len(completed)], choice.goals])[order]
    return np.concatenate([happened, asked[len(completed) :]])[: len(asked)]


def relabeled(trajectory: Trajectory, instruction: Array) -> Trajectory:
    """The trajectory as its environment would have made it, asked for this instruction."""
    assert trajectory.achieved is not None and trajectory.progress is not None
    after = follow(instruction, trajectory.achieved)
    result = replace(
        trajectory,
        instruction=instruction,
        progress=after.progress.astype(trajectory.progress.dtype),
        prev_reward=after.reward,
        terminal=trajectory.terminal | after.complete,
    )
    return cut(result, 0, int(after.complete.argmax()) + 1) if after.complete[-1] else result


def draw(weights: Array, scheme: int, rng: np.random.Generator) -> int:
    """An index, with chances as one of the SCHEMES has them."""
    return 0 if len(weights) == 1 else pick(odds(weights, scheme), rng)


def odds(weights: Array, scheme: int) -> Array:
    """Weights as one of the SCHEMES has them; the top five of five or fewer are all of them."""
    return weights if scheme == 0 and len(weights) <= _TOP else SCHEMES[scheme][1](weights)


def pick(weights: Array, rng: np.random.Generator) -> int:
    """An index, with chances in proportion to weights."""
    edges = weights.cumsum()
    at = int(edges.searchsorted(rng.random() * edges[-1], side="right"))
    return min(at, len(weights) - 1)
