"""Reading a trajectory store: ids, lengths, trajectories and counts of goals."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import lmdb
import numpy as np
from numpy.typing import NDArray

from amago.goals import GoalSpec
from amago.replay.codec import DamagedRecordError, check, decode, own
from amago.replay.database import Database, written_by_amago
from amago.replay.format import check_same_spaces, id_of, key_of
from amago.replay.rarity import GoalCounts, Rarity, combine, counts_from, no_counts
from amago.types import EnvSpec, Trajectory

_LOG = logging.getLogger("amago")


class TrajectoryReader(Database):
    """The trajectories of a store, as of the last `refresh`."""

    _num_protected: int

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        if not (self._path / "data.mdb").exists():
            raise ValueError(
                f"expected a replay store at {path}, got no data.mdb there; "
                "check the path, or let a TrajectoryStore create it first"
            )
        self._attach(readonly=True)
        self.refresh()

    def refresh(self, window: tuple[int, int] | None = None) -> None:
        """Look again: the store's window, or a given one, and what was added or evicted."""
        with self._reading() as txn, written_by_amago(self._path):
            if window is None:
                lo, hi = json.loads(bytes(txn.get(b"window", b"[0, 0]", self._meta)))
                window = (int(lo), int(hi))
            lengths = {
                id_of(key): int.from_bytes(value, "big") for key, value in txn.cursor(self._steps)
            }
            # LMDB lends its memory for the transaction only: a writer may reuse the page after it.
            num_protected = int(bytes(txn.get(b"protected", b"0", self._meta)))
            if not 0 <= num_protected <= sum(trajectory_id < 0 for trajectory_id in lengths):
                raise ValueError(f"{num_protected} protected trajectories are not there")
            self._num_protected = num_protected
        self._publish(window, lengths)

    def check_spaces(self, spec: EnvSpec) -> None:
        """ValueError unless the stored trajectories are of these spaces."""
        with self._reading() as txn:
            stored = bytes(txn.get(b"spaces", b"{}", self._meta)).decode()
        check_same_spaces(self._path, stored, spec)

    @property
    def goals(self) -> GoalSpec | None:
        """What the instructions of the stored trajectories are made of, if they have any."""
        return self._goals

    def goal_counts(self) -> GoalCounts:
        """How often each goal was achieved in the trajectories that may be sampled."""
        with self._reading() as txn:
            return self._counts(txn, self._window, self._num_protected)

    def rarity(self) -> Rarity:
        """The weights of goals in the trajectories that may be sampled."""
        return Rarity(self.goal_counts())

    @property
    def window(self) -> tuple[int, int]:
        """[lo, hi): the ids that may be sampled, protected ones apart."""
        return self._window

    @property
    def num_protected(self) -> int:
        """Trajectories that never leave; their ids are -1, -2, ..."""
        return self._num_protected

    @property
    def ids(self) -> NDArray[np.int64]:
        """Every id that may be sampled: the window in order, then the protected ones."""
        return np.concatenate([np.arange(*self._window), -1 - np.arange(self._num_protected)])

    @property
    def lengths(self) -> Mapping[int, int]:
        """Steps T of every trajectory on disk, by id."""
        return MappingProxyType(self._lengths)

    @property
    def num_steps(self) -> int:
        """Steps of all trajectories that may be sampled."""
        return sum(self._lengths[trajectory_id] for trajectory_id in self.ids.tolist())

    def __len__(self) -> int:
        lo, hi = self._window
        return hi - lo + self._num_protected

    def read(self, trajectory_id: int) -> Trajectory:
        """A whole trajectory; its arrays own their memory."""
        return self._read(trajectory_id, 0, None)

    def read_window(self, trajectory_id: int, start: int, num_rows: int) -> Trajectory:
        """Rows start..start+num_rows-1 of a trajectory, without reading the others."""
        return self._read(trajectory_id, start, start + num_rows)

    def _attach(self, readonly: bool) -> None:
        super()._attach(readonly)
        self._sound, self.damaged = set[int](), set[int]()

    def _read(self, trajectory_id: int, start: int, stop: int | None) -> Trajectory:
        with self._reading() as txn:
            record = txn.get(key_of(trajectory_id), db=self._records)
            if record is None:
                raise ValueError(
                    f"expected the id of a trajectory on disk, in {self._window} or in "
                    f"[{-self._num_protected}, 0), got {trajectory_id}; it may have been evicted: "
                    "call refresh() and take ids from .ids"
                )
            if trajectory_id not in self._sound:
                self._check(trajectory_id, record)
            return own(decode(record, start, stop, sound=True))

    def _check(self, trajectory_id: int, record: memoryview) -> None:
        """DamagedRecordError, noted and told once, unless a record is what was written."""
        try:
            steps = check(record, self._obs)
            if steps != self._lengths.get(trajectory_id, steps):
                raise DamagedRecordError(
                    f"expected {self._lengths[trajectory_id]} steps, as the store says, got {steps}"
                )
        except DamagedRecordError as error:
            if trajectory_id not in self.damaged:
                self.damaged.add(trajectory_id)
                _LOG.warning(f"trajectory {trajectory_id} of {self._path} is not used: {error}")
            raise
        self._sound.add(trajectory_id)

    def _counts(
        self, txn: lmdb.Transaction[Any], window: tuple[int, int], num_protected: int
    ) -> GoalCounts:
        """The counts of a window: those stored, plus what it has more, less what it has not."""
        spec = self._goals
        if spec is None:
            raise ValueError(
                f"expected the replay store {self._path} to hold trajectories with goals, got one "
                "of an environment without; goals are declared by EnvSpec.goals"
            )

        def total(ids: Iterable[int]) -> list[GoalCounts]:
            parts = []
            for trajectory_id in ids:
                record = txn.get(key_of(trajectory_id), db=self._goal_records)
                if record is None:
                    raise ValueError(
                        f"expected the goals of trajectory {trajectory_id} in {self._path}, got "
                        "none; it may have been evicted: call refresh()"
                    )
                parts.append(counts_from(record, spec))
            return parts

        stored = txn.get(b"goals", db=self._meta)
        counts = no_counts(spec) if stored is None else counts_from(stored, spec)
        lo, hi = json.loads(bytes(txn.get(b"window", b"[0, 0]", self._meta)))
        protected = range(counts.num_episodes - (hi - lo))
        wanted = range(num_protected)
        added = [
            *_without(range(*window), range(lo, hi)),
            *_without(wanted, protected, mirror=True),
        ]
        removed = [
            *_without(range(lo, hi), range(*window)),
            *_without(protected, wanted, mirror=True),
        ]
        if not added and not removed:
            return counts
        return combine([counts, *total(added)], total(removed))

    def _publish(self, window: tuple[int, int], lengths: dict[int, int]) -> None:
        lo, hi = window
        # Counted, not listed: the window of a damaged store may be of any size.
        missing = hi - lo - sum(lo <= i < hi for i in lengths)
        if not 0 <= lo <= hi or missing:
            first = next((i for i in range(lo, hi) if i not in lengths), None)
            received = "that" if first is None else f"{missing} missing, the first is {first}"
            raise ValueError(
                f"expected every trajectory of the window [{lo}, {hi}) in {self._path}, got "
                f"{received}; restore the replay from a copy, or go on with what is left: "
                f"`amago resume {self._path.parent} --from EPOCH`"
            )
        self._lengths = lengths
        self._window = (lo, hi)


def _without(ids: range, others: range, mirror: bool = False) -> list[int]:
    """The ids of one range that another lacks; mirrored: n means the protected id -1 - n."""
    left = range(ids.start, min(ids.stop, others.start))
    right = range(max(ids.start, others.stop), ids.stop)
    rest = [*ids] if not len(others) else [*left, *right]
    return [-1 - n for n in rest] if mirror else rest
