"""Contenders timed in turn, without the blocks that other processes disturbed.

Contenders take turns in blocks of calls, so that a slow minute of the machine hits them all.
During each block the CPU time that others took is measured: what the whole system was busy (and
what the hypervisor stole), minus what this process and its children used. Blocks above
`_MOST_DISTURBED` are dropped and played again, up to `max_rounds`.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

_MOST_DISTURBED = 0.1
"""CPU seconds that others may take per second of a block. The kernel counts in hundredths of a
second, so a block of .3 s on an idle machine can seem disturbed by a few of them."""

_STAT = Path("/proc/stat")
_TICKS_PER_SECOND = 100.0  # USER_HZ, which Linux fixes for all that /proc shows
_IDLE, _IOWAIT, _GUEST = 3, 4, 8  # columns of /proc/stat; guest time is part of user time


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    rounds: int = 7
    """Undisturbed blocks that every contender should get."""
    max_rounds: int = 14
    """Blocks after which each contender gives up hoping for a quiet one."""
    block_seconds: float = 0.3
    """Least length of a block."""
    warm_up: bool = True
    """Call every contender before its first block."""

    def __post_init__(self) -> None:
        if not 1 <= self.rounds <= self.max_rounds:
            raise ValueError(
                f"expected 1 <= rounds <= max_rounds, got {self.rounds} and {self.max_rounds}"
            )


@dataclass(frozen=True)
class _Reading:
    """Clocks that never go back, in seconds."""

    wall: float
    own: float
    """CPU time of this process and of its children that ended."""
    busy: float
    """CPU time that the machine did not spend idle, all cores together."""


@dataclass(frozen=True)
class _Block:
    seconds: float
    """Wall time per call."""
    disturbance: float
    """CPU seconds that others took per second."""


@dataclass(frozen=True)
class Timing:
    """What the kept blocks of one contender say."""

    seconds: float
    """Median wall time per call."""
    spread: float
    """Inter-quartile range as a share of the median."""
    kept: int
    """Blocks that count."""
    dropped: int
    """Blocks that others disturbed."""
    disturbed: bool
    """Too few blocks were quiet: these are the least disturbed ones, and not to be trusted."""


_Clocks = Callable[[], _Reading]


def _read_clocks() -> _Reading:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    own = sum(usage.ru_utime + usage.ru_stime for usage in used)
    return _Reading(time.perf_counter(), own, _busy_seconds(own))


def _busy_seconds(own: float) -> float:
    """Where the system does not tell (no Linux), nobody else is taken to be busy."""
    if not _STAT.exists():
        return own
    return _parse_busy(_STAT.read_text().partition("\n")[0])


def _parse_busy(line: str) -> float:
    """Busy seconds of all cores from the first line of /proc/stat, stolen time included."""
    ticks = [int(column) for column in line.split()[1:]]
    counted = sum(ticks[:_GUEST]) - ticks[_IDLE] - ticks[_IOWAIT]
    return counted / _TICKS_PER_SECOND


def interleave(
    contenders: Mapping[str, Callable[[], Any]], effort: Effort, clocks: _Clocks = _read_clocks
) -> dict[str, Timing]:
    """Time every contender, in turn and in alternating order."""
    turns = [_Turn(call, _calls_per_block(call, effort, clocks)) for call in contenders.values()]
    for number in range(effort.max_rounds):
        for turn in turns if number % 2 == 0 else reversed(turns):
            turn.play(clocks)
        if all(turn.num_quiet >= effort.rounds for turn in turns):
            break
    timings = (_timing_of(turn.blocks, effort.rounds) for turn in turns)
    return dict(zip(contenders, timings, strict=True))


@dataclass
class _Turn:
    call: Callable[[], Any]
    calls: int
    blocks: list[_Block] = field(default_factory=list)

    @property
    def num_quiet(self) -> int:
        return sum(block.disturbance <= _MOST_DISTURBED for block in self.blocks)

    def play(self, clocks: _Clocks) -> None:
        before = clocks()
        for _ in range(self.calls):
            self.call()
        after = clocks()
        wall = max(after.wall - before.wall, 1e-9)
        others = (after.busy - before.busy) - (after.own - before.own)
        self.blocks.append(_Block(wall / self.calls, max(others, 0.0) / wall))


def _calls_per_block(call: Callable[[], Any], effort: Effort, clocks: _Clocks) -> int:
    """Warm up, and find how many calls fill a block."""
    if not effort.warm_up:
        return 1
    calls, seconds = 1, _wall(call, 1, clocks)
    while seconds < effort.block_seconds:  # the first call, a cold one, was too short to tell
        seconds = _wall(call, calls, clocks)
        if seconds >= effort.block_seconds / 4:
            return math.ceil(calls * effort.block_seconds / seconds)
        calls *= 2
    return 1


def _wall(call: Callable[[], Any], calls: int, clocks: _Clocks) -> float:
    start = clocks().wall
    for _ in range(calls):
        call()
    return clocks().wall - start


def _timing_of(blocks: Sequence[_Block], enough: int) -> Timing:
    """Median and spread of the quiet blocks, or of the `enough` least disturbed ones."""
    kept = [block for block in blocks if block.disturbance <= _MOST_DISTURBED]
    disturbed = len(kept) < enough
    if disturbed:
        kept = sorted(blocks, key=lambda block: block.disturbance)[:enough]
    low, median, high = np.percentile([block.seconds for block in kept], (25, 50, 75))
    return Timing(
        seconds=float(median),
        spread=float((high - low) / median),
        kept=len(kept),
        dropped=len(blocks) - len(kept),
        disturbed=disturbed,
    )
