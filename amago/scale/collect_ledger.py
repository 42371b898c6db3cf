"""How far collecting and learning have come, and who has to wait for whom."""

from __future__ import annotations

from dataclasses import dataclass

_AHEAD = 2
"""Epochs that may be collected beyond those that are learned: the one that is being learned from,
and the next."""


@dataclass
class Ledger:
    """Back-pressure both ways. Epochs are counted in lanes: every lane's share counts 1."""

    num_lanes: int
    num_epochs: int
    """Epochs of the run that collect."""
    max_lag: int
    """Epochs of updates that weights may be behind."""
    updates_per_epoch: int
    collected: int = 0
    """Lanes' shares that are stored."""
    issued: int = 0
    """Lanes' shares that are stored or being played."""
    epoch: int = 0
    """The epoch that is being learned from, or waited for."""

    def may_issue(self, lanes: range) -> bool:
        """Whether some lanes may begin another share."""
        epochs = min(self.epoch - 1 + _AHEAD, self.num_epochs)
        return self.issued + len(lanes) <= epochs * self.num_lanes

    def may_learn(self, updates: int, oldest: int | None) -> bool:
        """Whether the epoch's updates may begin, after `updates` of them; `oldest` is the version
        of the oldest weights that a collector plays with."""
        if self.collected < self.epoch * self.num_lanes:
            return False
        bound = updates + (1 - self.max_lag) * self.updates_per_epoch
        return oldest is None or oldest >= bound
