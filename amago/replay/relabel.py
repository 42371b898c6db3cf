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
from amago.replay.candidates import candidates, completed_rows
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
_ALIKE = 1
_CHANCES = list(accumulate(chance for chance, _ in SCHEMES))[:-1]


@dataclass(frozen=True)
class Choice:
    """Goals taken from a rollout in hindsight, in the order in which they were achieved."""

    rows: Array  # [h]
    goals: Array  # [h, goal size]


class _Hindsight(NamedTuple):
    """One relabeling: what it began with, what it chose there, and what came of it."""

    before: Trajectory
    choice: Choice
    after: Trajectory


class Relabeler:
    """A Sampler's transform: another instruction for a trajectory, as the settings say."""

    def __init__(
        self, settings: RelabelSettings, rarity: Rarity | None, *, repeats: bool = False
    ) -> None:
        """`rarity` belongs to a window of the store; None draws all goals alike. `repeats` is the
        GoalSpec's: may an instruction ask for a goal twice?"""
        self._settings, self._repeats = settings, repeats
        self._rarity = rarity if settings.importance_sampling else None

    def __call__(self, trajectory: Trajectory, rng: np.random.Generator) -> Trajectory:
        return self.look_back(trajectory, rng).after

    def look_back(self, trajectory: Trajectory, rng: np.random.Generator) -> _Hindsight:
        """Relabel a trajectory and tell how; where nothing is chosen it stays what it was."""
        before = self.begin(trajectory)
        choice = self.choose(before, rng)
        if not len(choice.rows):
            return _Hindsight(before, choice, before)
        instruction = _merged(before, choice, repeats=self._repeats)
        return _Hindsight(before, choice, _relabeled(before, instruction))

    def begin(self, trajectory: Trajectory) -> Trajectory:
        """What is relabeled: the trajectory, or what it is when asked for its first goal only."""
        if trajectory.instruction is None:
            raise ValueError(
                "expected a trajectory with an instruction, got one without; relabeling is for "
                "environments whose spec has goals"
            )
        if self._settings.multi_goal or len(trajectory.instruction) == 1:
            return trajectory
        return _relabeled(trajectory, trajectory.instruction[:1])

    def choose(self, trajectory: Trajectory, rng: np.random.Generator) -> Choice:
        """Draw steps without replacement, then one new goal of each; maybe none at all.

        Unless instructions repeat goals, one that was drawn is not drawn again.
        """
        assert trajectory.achieved is not None
        count = self._num_hindsight(trajectory, rng)
        if not count:
            return Choice(np.zeros(0, np.int64), trajectory.achieved[1][:0])
        rows, goals, keys = candidates(trajectory, repeats=self._repeats)
        weights, scheme = self._weights(goals, rng)
        left, chosen = np.arange(len(rows)), list[int]()
        while len(chosen) < count and len(left):
            at = left[_draw_goal(rows[left], weights[left], scheme, rng)]
            chosen.append(int(at))
            kept = rows[left] != rows[at]
            if not self._repeats:
                kept &= keys[left] != keys[at]
            left = left[kept]
        order = np.array(sorted(chosen), np.int64)
        return Choice(rows[order], goals[order])

    def _weights(self, goals: Array, rng: np.random.Generator) -> tuple[Array, int]:
        """The weights of a trajectory's goals, and the scheme of all its draws."""
        if self._rarity is None:
            return np.ones(len(goals)), _ALIKE
        frequency: Frequency = "step" if rng.random() < 0.5 else "episode"
        return self._rarity.weights(goals, frequency), bisect(_CHANCES, rng.random())

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
        self._store, self._settings, self._repeats = store, settings, store.goals.repeats

    def snapshot(self) -> Relabeler:
        """The transform for the store as it is now."""
        weighted = self._settings.importance_sampling and self._settings.relabel != "none"
        rarity = self._store.rarity() if weighted else None
        return Relabeler(self._settings, rarity, repeats=self._repeats)

    def __call__(self, trajectory: Trajectory, rng: np.random.Generator) -> Trajectory:
        return self.snapshot()(trajectory, rng)


def _merged(trajectory: Trajectory, choice: Choice, *, repeats: bool) -> Array:
    """The new instruction: what was completed and chosen in the order in which it happened,
    then what was asked for and is still open, up to the length of the old one.

    Unless instructions repeat goals, what is still open does not hold what was chosen.
    """
    assert trajectory.instruction is not None
    asked, completed = trajectory.instruction, completed_rows(trajectory)
    order = np.concatenate([completed, choice.rows]).argsort()
    happened = np.concatenate([asked[: len(completed)], choice.goals])[order]
    still_open = asked[len(completed) :]
    if not repeats:
        still_open = _without(still_open, choice.goals)
    return np.concatenate([happened, still_open])[: len(asked)]


def _without(goals: Array, taken: Array) -> Array:
    """Goals [n, size] less one of each that was taken, where there is one."""
    kept = np.ones(len(goals), np.bool_)
    for goal in taken:
        kept[(kept & (goals == goal).all(axis=1)).nonzero()[0][:1]] = False
    return goals[kept]


def _relabeled(trajectory: Trajectory, instruction: Array) -> Trajectory:
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


def _draw_goal(rows: Array, weights: Array, scheme: int, rng: np.random.Generator) -> int:
    """An index: first a row by the sum of its goals' weights, then one of its goals."""
    starts = np.concatenate(([0], 1 + (rows[1:] != rows[:-1]).nonzero()[0]))
    row = draw(np.add.reduceat(weights, starts), scheme, rng)
    first, stop = int(starts[row]), int(starts[row + 1]) if row + 1 < len(starts) else len(rows)
    return first + draw(weights[first:stop], scheme, rng)


def draw(weights: Array, scheme: int, rng: np.random.Generator) -> int:
    """An index, with chances as one of the SCHEMES has them."""
    return 0 if len(weights) == 1 else _pick(_odds(weights, scheme), rng)


def _odds(weights: Array, scheme: int) -> Array:
    """Weights as one of the SCHEMES has them; the top five of five or fewer are all of them."""
    return weights if scheme == 0 and len(weights) <= _TOP else SCHEMES[scheme][1](weights)


def _pick(weights: Array, rng: np.random.Generator) -> int:
    """An index, with chances in proportion to weights."""
    edges = weights.cumsum()
    at = int(edges.searchsorted(rng.random() * edges[-1], side="right"))
    return min(at, len(weights) - 1)
