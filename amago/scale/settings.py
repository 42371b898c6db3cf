"""Settings of a run on more than one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from amago.checks import at_least


@dataclass(frozen=True)
class ScaleSettings:
    collectors: int = 0
    """Processes that collect for the learner, each with a part of the lanes; 0: the learner
    collects by itself."""
    learners: int = 1
    """Processes that learn together, each from its slice of every batch. The first is the run
    itself; with an address, Ray places the others."""
    address: str = ""
    """Ray cluster that the processes are placed on: auto (the one of this machine), HOST:PORT, or
    local (a new one on this machine alone). Unset: processes of this machine, without Ray."""
    mode: Literal["sync", "async"] = "sync"
    """sync: collect an epoch, then learn, as without collectors. async: collect while learning."""
    max_lag: int = 2
    """async: epochs of updates that the weights of a collector may be behind the learner's."""
    timeout_seconds: float = 1800.0
    """A collector that needs longer for its part of an epoch is taken for dead and replaced. A
    learner that needs longer for an update ends the run."""

    def __post_init__(self) -> None:
        at_least(0, self, "scale", "collectors")
        at_least(1, self, "scale", "learners", "max_lag", "timeout_seconds")
        host, colon, port = self.address.rpartition(":")
        if self.address not in ("", "auto", "local") and not (host and colon and port.isdecimal()):
            raise ValueError(
                "--scale.address takes auto, local or HOST:PORT of a Ray cluster, got "
                f"{self.address!r}"
            )
        if self.mode == "async" and not self.collectors:
            raise ValueError(
                "--scale.mode async needs a process that collects beside the learner; add "
                "--scale.collectors 1 or more"
            )
