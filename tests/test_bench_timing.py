"""The stop-watch: turns, dropped blocks, medians; on clocks that tests move by hand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from amago.bench.timing import (
    _MOST_DISTURBED,
    Effort,
    _Block,
    _parse_busy,
    _read_clocks,
    _Reading,
    _timing_of,
    interleave,
)


class Machine:
    """Two cores whose time passes only when a contender works."""

    def __init__(self) -> None:
        self.wall = self.own = self.others = 0.0
        self.log: list[str] = []

    def clocks(self) -> _Reading:
        return _Reading(self.wall, self.own, self.own + self.others)

    def contender(
        self, name: str, seconds: Sequence[float], others: Sequence[float] = (0.0,)
    ) -> Callable[[], None]:
        """Calls last `seconds`, in which others take `others` CPU seconds; then the last again."""
        calls = 0

        def call() -> None:
            nonlocal calls
            passed = seconds[min(calls, len(seconds) - 1)]
            self.wall += passed
            self.own += 2 * passed
            self.others += others[min(calls, len(others) - 1)]
            calls += 1
            self.log.append(name)

        return call


COLD = Effort(rounds=3, max_rounds=5, block_seconds=1.0, warm_up=False)


def test_busy_time_is_all_but_idle_and_waiting_and_counts_stolen_time() -> None:
    # user nice system idle iowait irq softirq steal guest guest_nice
    assert _parse_busy("cpu  100 20 30 5000 400 1 2 7 90 9") == pytest.approx(1.60)


def test_disturbed_blocks_are_dropped_and_played_again() -> None:
    machine = Machine()
    others = [0.0, 0.5, 0.0, 0.0]
    call = machine.contender("a", [1.0, 9.0, 2.0, 4.0], others)
    timing = interleave({"a": call}, COLD, machine.clocks)["a"]
    # 0.5 of 9 s is little; the second block must go for its share, not for its length.
    assert timing.dropped == 0 and timing.kept == 3
    machine = Machine()
    call = machine.contender("a", [1.0, 9.0, 2.0, 4.0], [0.0, 5.0, 0.0, 0.0])
    timing = interleave({"a": call}, COLD, machine.clocks)["a"]
    assert (timing.kept, timing.dropped, timing.disturbed) == (3, 1, False)
    assert timing.seconds == 2.0 and len(machine.log) == 4
    assert timing.spread == pytest.approx((3.0 - 1.5) / 2.0)


def test_no_more_rounds_than_needed_when_all_is_quiet() -> None:
    machine = Machine()
    contenders = {name: machine.contender(name, [1.0]) for name in "ab"}
    interleave(contenders, COLD, machine.clocks)
    assert machine.log == ["a", "b", "b", "a", "a", "b"]


def test_a_contender_that_nobody_disturbed_goes_on_while_another_needs_quiet() -> None:
    machine = Machine()
    quiet = machine.contender("a", [1.0])
    noisy = machine.contender("b", [1.0], [1.0, 1.0, 0.0])
    timings = interleave({"a": quiet, "b": noisy}, COLD, machine.clocks)
    assert (timings["a"].kept, timings["a"].dropped) == (5, 0)
    assert (timings["b"].kept, timings["b"].dropped) == (3, 2)
    assert not timings["b"].disturbed


def test_on_a_busy_machine_the_least_disturbed_blocks_are_kept_and_marked() -> None:
    machine = Machine()
    call = machine.contender("a", [7.0, 1.0, 2.0, 8.0, 3.0], [7.0, 0.2, 0.5, 8.0, 0.9])
    timing = interleave({"a": call}, COLD, machine.clocks)["a"]
    assert timing.disturbed
    assert (timing.kept, timing.dropped, timing.seconds) == (3, 2, 2.0)


def test_the_threshold_is_a_share_of_the_block() -> None:
    at, above = _MOST_DISTURBED, _MOST_DISTURBED * 1.01
    assert not _timing_of([_Block(1.0, at)], 1).disturbed
    assert _timing_of([_Block(1.0, above)], 1).disturbed


def test_short_calls_are_gathered_into_blocks_of_the_asked_length() -> None:
    machine = Machine()
    effort = Effort(rounds=2, max_rounds=2, block_seconds=0.3)
    call = machine.contender("a", [5e-4, 1e-3])
    timing = interleave({"a": call}, effort, machine.clocks)["a"]
    assert timing.seconds == pytest.approx(1e-3)
    # The cold call, then 1 + 2 + ... + 128 calls until a quarter of a block, then two blocks.
    assert len(machine.log) == 1 + 255 + 2 * 300


def test_a_call_that_fills_a_block_is_warmed_up_once() -> None:
    machine = Machine()
    effort = Effort(rounds=2, max_rounds=2, block_seconds=0.3)
    interleave({"a": machine.contender("a", [2.0, 1.0])}, effort, machine.clocks)
    assert len(machine.log) == 3


def test_disturbance_of_a_block_is_not_blamed_on_own_threads() -> None:
    """Own CPU time is twice the wall time here, and everything stays quiet."""
    machine = Machine()
    timing = interleave({"a": machine.contender("a", [1.0])}, COLD, machine.clocks)["a"]
    assert machine.own == 2 * machine.wall and not timing.disturbed


@pytest.mark.parametrize(("rounds", "most"), [(0, 3), (4, 3)])
def test_rounds_that_cannot_be_are_refused(rounds: int, most: int) -> None:
    with pytest.raises(ValueError, match=f"1 <= rounds <= max_rounds, got {rounds} and {most}"):
        Effort(rounds=rounds, max_rounds=most)


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="the system does not tell")
def test_cpu_time_of_a_child_is_others_until_it_ends_and_own_afterwards() -> None:
    spin = "import time; e = time.process_time() + .5\nwhile time.process_time() < e: pass"
    start = _read_clocks()
    child = subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()  # ends with the child, which is not yet reaped
    running = _read_clocks()
    child.wait()
    ended = _read_clocks()
    assert running.own - start.own < 0.2
    assert (running.busy - start.busy) - (running.own - start.own) > 0.3
    assert ended.own - running.own > 0.45
