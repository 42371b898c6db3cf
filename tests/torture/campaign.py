"""All attacks on all kinds of runs, and the tables of what came of them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torture.children import adopt_orphans
from torture.faults import ATTACKS, OF_WORKERS, attack
from torture.kills import Rhythm, Tally, kill_runs, undisturbed
from torture.sweeps import KIND as SWEEP
from torture.sweeps import RUNS as SWEPT
from torture.sweeps import kill_sweeps
from torture.target import Faults, Target

_ATTACKED = ("GRU, continuous", "relabeling", "pixels")
"""Kinds of runs that suffer the attacks other than kills, in turn."""
_WITH_WORKERS = ("Gymnasium, workers", "relabeling, GRU, workers")
MARKS = ("<!-- torture -->", "<!-- end of torture -->")


@dataclass
class Outcome:
    kills: dict[str, Tally] = field(default_factory=dict)
    faults: dict[str, Faults] = field(default_factory=dict)

    @property
    def failures(self) -> list[str]:
        tallies = [*self.kills.values(), *self.faults.values()]
        return [failure for tally in tallies for failure in tally.failures]


def campaign(
    kinds: Sequence[str], kills: int, faults: int, seed: int, folder: Path,
    say: Callable[[str], None], attacks: Sequence[str] = tuple(ATTACKS),
    outcome: Outcome | None = None,
) -> Outcome:  # fmt: skip
    """So many kills, shared out among the kinds, and so many times each of the attacks.

    What came of them is added to `outcome` as it goes on.
    """
    adopt_orphans()
    outcome, made = outcome or Outcome(), dict[str, tuple[Path, Rhythm]]()

    def whole(kind: str) -> tuple[Path, Rhythm]:
        if kind not in made:
            path = folder / f"whole-{len(made)}"
            made[kind] = path, undisturbed(kind, path)
        return made[kind]

    for kind, share in shares(kinds, kills).items():
        start, rng, tally = time.monotonic(), random.Random(f"{seed} {kind}"), Tally()
        if kind == SWEEP:
            wholes = {each: whole(each) for each in SWEPT}
            outcome.kills[kind] = tally
            kill_sweeps(folder, wholes, share, rng, tally)
        else:
            path, rhythm = whole(kind)
            outcome.kills[kind] = tally
            kill_runs(kind, folder, path, rhythm, share, rng, tally)
        say(f"{kind}, {time.monotonic() - start:.0f} s: {tally}")
    for name in attacks:
        suffering = _WITH_WORKERS if name in OF_WORKERS else _ATTACKED
        attacked = [kind for kind in suffering if kind in kinds]
        if not attacked:
            continue
        start, rng, seen = time.monotonic(), random.Random(f"{seed} {name}"), Faults()
        for number in range(faults):
            kind = attacked[number % len(attacked)]
            path, rhythm = whole(kind)
            attack(name, Target(kind, folder, path, rhythm, rng), seen)
        outcome.faults[name] = seen
        say(f"{name}, {time.monotonic() - start:.0f} s: {seen}")
    return outcome


def shares(kinds: Sequence[str], kills: int) -> dict[str, int]:
    """How often each kind is killed: alike, and at least once."""
    each, rest = divmod(max(kills, len(kinds) if kills else 0), max(len(kinds), 1))
    return {kind: each + (number < rest) for number, kind in enumerate(kinds)}


_COUNTS = ("kills", "while_restoring", "in_resumed_runs", "at_files", "runs", "exact")
_KILLS_HEAD = (
    "| runs | kills | while restoring | in resumed runs | at a file operation "
    "| complete runs | exact | failures |\n|---|---|---|---|---|---|---|---|"
)
_FAULTS_HEAD = (
    "| attack | times | stopped or refused in one sentence | exact, at once or afterwards "
    "| went on with what was left | failures |\n|---|---|---|---|---|---|"
)


def tables(outcome: Outcome) -> str:
    """The results as docs/reliability.md shows them."""
    rows, tallies = [_KILLS_HEAD], outcome.kills.values()
    for kind, tally in outcome.kills.items():
        rows.append(_row(kind, [getattr(tally, name) for name in _COUNTS], tally.failures))
    sums = [sum(getattr(tally, name) for tally in tallies) for name in _COUNTS]
    rows.append(_row("all", sums, [each for tally in tallies for each in tally.failures]))
    rows += ["", _FAULTS_HEAD] if outcome.faults else []
    for name, seen in outcome.faults.items():
        counts = [seen.times, seen.refused, seen.exact, seen.went_on]
        rows.append(_row(name, counts, seen.failures))
    return "\n".join(rows)


def _row(name: str, counts: list[int], failures: list[str]) -> str:
    return f"| {name} | {' | '.join(map(str, counts))} | {len(failures)} |"


def write(page: Path, text: str | None) -> None:
    """Put tables into the place that a page has for them; None only looks for that place."""
    before, first, rest = page.read_text().partition(MARKS[0])
    _, second, after = rest.partition(MARKS[1])
    if not (first and second):
        raise ValueError(f"{page} has no place for the tables: it needs the marks {MARKS}")
    if text is not None:
        page.write_text(f"{before}{first}\n{text}\n{second}{after}")
