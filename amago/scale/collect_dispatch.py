"""Shares to collectors, harvests back; what is lost is played again by another collector."""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import dataclass

from amago.scale.collect_fleet import Event, Failed, Fleet, Lost, Played, Ready
from amago.scale.collect_weights import Weights
from amago.scale.collector import Harvest, LaneShare

_LOG = logging.getLogger("amago")
_MOST_LOSSES = 5
"""Collectors that may be lost one after the other over the same share, or before they begin."""


@dataclass(frozen=True)
class _Playing:
    """What a collector is at."""

    share: LaneShare
    begin: float
    version: int


class Dispatch:
    """A queue of shares and the collectors that play them."""

    def __init__(self, fleet: Fleet, num_collectors: int, timeout: float) -> None:
        self.fleet, self.timeout = fleet, timeout
        self.replaced = 0
        """Collectors that were lost so far."""
        self._queue: deque[LaneShare] = deque()
        self._waiting: list[int] = []
        self._playing: dict[int, _Playing] = {}
        self._version = -1
        self._home: dict[int, range] = {}
        """Collector → the lanes that it has played last, whose environments it has."""
        self._losses: dict[range, int] = {}
        self._failed_starts, self._most_failed_starts = 0, max(_MOST_LOSSES, 2 * num_collectors)
        for _ in range(num_collectors):
            fleet.add()

    @property
    def num_collectors(self) -> int:
        """Those that are in place."""
        return len(self._waiting) + len(self._playing)

    @property
    def num_spare(self) -> int:
        """Collectors for which no share is in the queue."""
        return len(self._waiting) - len(self._queue)

    @property
    def oldest(self) -> int | None:
        """The version of the oldest weights that are being played with."""
        return min((playing.version for playing in list(self._playing.values())), default=None)

    def publish(self, weights: Weights) -> None:
        """Shares that are handed out from now on are played with these weights."""
        self.fleet.publish(weights)
        self._version = weights.version

    def put(self, share: LaneShare) -> None:
        self._queue.append(share)

    def step(self, timeout: float) -> list[Harvest]:
        """Hand out what can be handed out; the harvests that came in."""
        self._hand_out()
        harvests = []
        for event in self.fleet.poll(timeout):
            harvest = self._take(event)
            if harvest is not None:
                harvests.append(harvest)
        self._end_overdue()
        return harvests

    def _hand_out(self) -> None:
        while self._queue and self._waiting:
            share = self._queue.popleft()
            at_home = [c for c in self._waiting if self._home.get(c) == share.lanes]
            new = [c for c in self._waiting if c not in self._home]
            collector = (at_home or new or self._waiting)[0]
            self._waiting.remove(collector)
            self._home[collector] = share.lanes
            self._playing[collector] = _Playing(share, time.monotonic(), self._version)
            self.fleet.send(collector, share)

    def _take(self, event: Event) -> Harvest | None:
        match event:
            case Ready(collector):
                self._failed_starts = 0
                self._waiting.append(collector)
            case Played(collector, harvest):
                del self._playing[collector]
                self._losses.pop(harvest.share.lanes, None)
                self._waiting.append(collector)
                return harvest
            case Failed(_, report):
                raise RuntimeError(f"a collector raised an exception:\n{report}")
            case Lost(collector, reason):
                self._replace(collector, reason)
        return None

    def _replace(self, collector: int, reason: str) -> None:
        self.replaced += 1
        playing = self._playing.pop(collector, None)
        if collector in self._waiting:
            self._waiting.remove(collector)
        elif playing is None:
            self._failed_starts += 1
        if playing is not None:
            lanes = playing.share.lanes
            self._losses[lanes] = self._losses.get(lanes, 0) + 1
            self._queue.appendleft(playing.share)
        most = max(self._losses.values(), default=0)
        if most >= _MOST_LOSSES or self._failed_starts >= self._most_failed_starts:
            raise RuntimeError(
                f"collectors are lost again and again ({reason}): they are killed (out of memory?) "
                "or crash in native code; try --scale.collectors 0 to see it happen in this process"
            )
        _LOG.warning(f"a collector was lost ({reason}); another one takes its place")
        self.fleet.add()

    def _end_overdue(self) -> None:
        now = time.monotonic()
        for collector, playing in list(self._playing.items()):
            if now - playing.begin > self.timeout:
                self.fleet.remove(collector)
                self._replace(collector, f"silent for {self.timeout:g} seconds")
