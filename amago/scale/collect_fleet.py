"""What placing collectors and moving data between them and the learner looks like, by any means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from amago.scale.collect_weights import Weights
from amago.scale.collector import Harvest, LaneShare


@dataclass(frozen=True)
class Ready:
    """A collector is in place and waits for work."""

    collector: int


@dataclass(frozen=True)
class Played:
    """A collector has played its share and waits for work."""

    collector: int
    harvest: Harvest


@dataclass(frozen=True)
class Lost:
    """A collector is no more; what it was playing is lost."""

    collector: int
    reason: str


@dataclass(frozen=True)
class Failed:
    """A collector raised an exception: its environment or agent is at fault, not its place."""

    collector: int
    report: str


Event = Ready | Played | Lost | Failed


class Fleet(Protocol):
    """Collectors by number."""

    def add(self) -> int:
        """Ask for one more collector; Ready says when it is in place."""

    def publish(self, weights: Weights) -> None:
        """Shares that are sent from now on are played with these weights."""

    def send(self, collector: int, share: LaneShare) -> None:
        """Let a collector that waits play a share."""

    def poll(self, timeout: float) -> list[Event]:
        """What happened, after at most `timeout` seconds."""

    def remove(self, collector: int) -> None:
        """End a collector, whatever it does."""

    def close(self) -> None:
        """End them all."""
