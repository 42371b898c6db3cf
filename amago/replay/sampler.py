"""Batches for the learner: pick trajectories, relabel, cut windows, collate, ahead of time."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from amago.replay.codec import DamagedRecordError
from amago.replay.collate import collate
from amago.replay.reader import TrajectoryReader
from amago.replay.window import cut, draw_window
from amago.types import Batch, Trajectory

_Transform = Callable[[Trajectory, np.random.Generator], Trajectory]


@runtime_checkable
class _WindowTransform(Protocol):
    """A transform that depends on what the store holds, such as relabeling by rarity."""

    def snapshot(self) -> _Transform:
        """The transform for the store as it is now; unaffected by what is appended later."""

    def __call__(self, trajectory: Trajectory, rng: np.random.Generator) -> Trajectory: ...


@dataclass(frozen=True)
class _Snapshot:
    """What the batches of one call are made from; unaffected by what is appended later."""

    ids: NDArray[np.int64]
    transform: _Transform | None
    num_windows: int
    shares: NDArray[np.float64] | None
    """Cumulated chances of the ids to be drawn, up to 1; None: all the same."""

    def draw(self, rng: np.random.Generator) -> list[int]:
        """The trajectories of one batch, with replacement."""
        if self.shares is None:
            numbers = rng.integers(len(self.ids), size=self.num_windows)
        else:
            numbers = np.searchsorted(self.shares, rng.random(self.num_windows), side="right")
        drawn: list[int] = self.ids[numbers].tolist()
        return drawn


class Sampler:
    """Windows of stored trajectories, a function of (seed, update, store window).

    Batches of so many windows: uniform windows of uniform trajectories. Batches of so many rows:
    a trajectory that is longer than a window is drawn more often, as many times as windows would
    cover it, so that every stored row teaches equally often.
    """

    def __init__(
        self,
        store: TrajectoryReader,
        batch_size: int,
        context_length: int,
        seed: int,
        transform: _Transform | None = None,
        batch_rows: int | None = None,
    ) -> None:
        """`transform` sees whole trajectories; windows are cut from what it returns.

        `batch_rows` counts a batch in transitions instead of windows.

        Instructions, where the store has them, get as many slots as its spec says.
        """
        for name, value, least in (
            ("batch_size", batch_size, 1),
            ("context_length", context_length, 1),
            ("seed", seed, 0),
        ):
            if value < least:
                raise ValueError(f"expected {name} of at least {least}, got {value}; raise it")
        self._store, self._batch_size, self._context_length = store, batch_size, context_length
        self._seed, self._transform, self._batch_rows = seed, transform, batch_rows
        self._max_goals = None if store.goals is None else store.goals.max_goals

    def batch(self, update_index: int) -> Batch:
        """The batch of one update, from the store as it is now."""
        return self._make(update_index, self._snapshot())

    def batches(self, start: int, stop: int, prefetch: int = 0) -> Generator[Batch, None, None]:
        """The batches of updates start..stop-1, in order, up to `prefetch` of them made ahead.

        They are made from the store as it is at this call, whatever is appended meanwhile; evict
        only when the iterator is done.
        """
        if prefetch < 0:
            raise ValueError(f"expected a prefetch of 0 or more batches, got {prefetch}; raise it")
        snapshot = self._snapshot()
        if prefetch == 0:
            return (self._make(update_index, snapshot) for update_index in range(start, stop))
        return self._ahead(range(start, stop), snapshot, prefetch)

    def _ahead(
        self, updates: range, snapshot: _Snapshot, prefetch: int
    ) -> Generator[Batch, None, None]:
        pending: deque[Future[Batch]] = deque()
        with ThreadPoolExecutor(1, "amago-sampler") as pool:
            try:
                for update_index in updates:
                    pending.append(pool.submit(self._make, update_index, snapshot))
                    if len(pending) > prefetch:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()

    def _make(self, update_index: int, snapshot: _Snapshot) -> Batch:
        rng = np.random.default_rng((self._seed, update_index))
        cuts = (self._sound_window(pick, snapshot, rng) for pick in snapshot.draw(rng))
        starts, windows = zip(*cuts, strict=True)
        return collate(windows, starts, self._max_goals)

    def _sound_window(
        self, trajectory_id: int, snapshot: _Snapshot, rng: np.random.Generator
    ) -> tuple[int, Trajectory]:
        """A window of that trajectory; where its record is damaged, of another one."""
        while True:
            try:
                return self._window(trajectory_id, snapshot.transform, rng)
            except DamagedRecordError:
                sound = snapshot.ids[~np.isin(snapshot.ids, list(self._store.damaged))]
                if not len(sound):
                    raise
                trajectory_id = int(sound[rng.integers(len(sound))])

    def _window(
        self, trajectory_id: int, transform: _Transform | None, rng: np.random.Generator
    ) -> tuple[int, Trajectory]:
        if transform is None:
            num_steps = self._store.lengths[trajectory_id]
            start, rows = draw_window(num_steps, self._context_length, rng)
            return start, self._store.read_window(trajectory_id, start, rows)
        trajectory = transform(self._store.read(trajectory_id), rng)
        start, rows = draw_window(trajectory.num_steps, self._context_length, rng)
        return start, cut(trajectory, start, start + rows)

    def _snapshot(self) -> _Snapshot:
        ids = self._store.ids
        if len(ids) == 0:
            raise ValueError(
                "expected at least 1 trajectory to sample from, got an empty store; "
                "collect before learning, or point to a store that has been filled"
            )
        transform = self._transform
        if isinstance(transform, _WindowTransform):
            transform = transform.snapshot()
        if self._batch_rows is None:
            return _Snapshot(ids, transform, self._batch_size, None)
        lengths = np.array([self._store.lengths[i] for i in ids.tolist()])
        covering = np.cumsum(np.maximum(1.0, lengths / self._context_length))
        # As many windows as hold `batch_rows` on average: the last sum covers all rows once.
        num_windows = math.ceil(self._batch_rows * covering[-1] / lengths.sum())
        return _Snapshot(ids, transform, num_windows, covering / covering[-1])
