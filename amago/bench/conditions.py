"""The conditions that every case is measured under."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from amago.bench.timing import Effort

SOURCE = Path(__file__).resolve().parents[2]
"""The folder of the package: the repository, or site-packages."""
QUICK = Effort(rounds=3, max_rounds=3, block_seconds=0.1)


def _silent(message: str) -> None: ...


@dataclass(frozen=True)
class Bench:
    """The conditions of one run of `amago bench`."""

    threads: int = 1
    effort: Effort = field(default_factory=Effort)
    device: str = "cpu"
    """Where networks learn and act; collectors always act on the CPU."""
    quick: bool = False
    """Leave out what takes minutes."""
    say: Callable[[str], None] = _silent
    """Called with a line about each step."""
