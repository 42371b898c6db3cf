"""All attacks on all kinds of runs, and the tables of what came of them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torture.children import adopt_orphans
from torture.faults import ATTACKS, Faults, Target, attack
from torture.kills import Rhythm, Tally, kill_runs, undisturbed
from torture.sweeps import KIND as SWEEP
from torture.sweeps import kill_sweeps
from torture.sweeps import runs as sweep_runs

_ATTACKED = ("GRU, continuous", "relabeling", "pixels")
"""Kinds of runs that suffer the attacks other than kills, in turn."""
MARKS = ("<!-- torture -->\n", "<!-- end of torture -->")


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
) -> Outcome:  # fmt: skip
    """So many kills, shared out among the kinds, and so many times each of the attacks."""
    adopt_orphans()
    outcome, made = Outcome(), dict[str, tuple[Path, Rhythm]]()

    def whole(kind: str) -> tuple[Path, Rhythm]:
        if kind not in made:
            path = folder / f"whole-{len(made)}"
            made[kind] = path, undisturbed(kind, path)
        return made[kind]

    for number, kind in enumerate(kinds):
        start, rng, tally = time.monotonic(), random.Random(f"{seed} {kind}"), Tally()
        share = kills // len(kinds) + (number < kills % len(kinds))
        if kind == SWEEP:
            wholes = {each: whole(each)[0] for each in sweep_runs()}
            kill_sweeps(folder, wholes, share, rng, tally)
        else:
            kill_runs(kind, folder, *whole(kind), share, rng, tally)
        outcome.kills[kind] = tally
        say(f"{kind}, {time.monotonic() - start:.0f} s: {tally}")
    attacked = [kind for kind in _ATTACKED if kind in kinds]
    for name in attacks if attacked else ():
        start, rng, seen = time.monotonic(), random.Random(f"{seed} {name}"), Faults()
        for number in range(faults):
            kind = attacked[number % len(attacked)]
            path, rhythm = whole(kind)
            attack(name, Target(kind, folder, path, rhythm, rng), seen)
        outcome.faults[name] = seen
        say(f"{name}, {time.monotonic() - start:.0f} s: {seen}")
    return outcome


def tables(outcome: Outcome) -> str:
    """The results as docs/reliability.md shows them."""
    rows = ["| runs | kills | while restoring | in resumed runs | at a file operation "
            "| complete runs | exact | failures |", "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    total = Tally()
    for kind, t in [*outcome.kills.items(), ("all", total)]:
        counts = (t.kills, t.while_restoring, t.in_resumed_runs, t.at_files, t.runs, t.exact)
        rows.append(f"| {kind} | {' | '.join(map(str, counts))} | {len(t.failures)} |")
        if t is not total:
            for name in ("kills", "while_restoring", "in_resumed_runs", "at_files", "runs",
                         "exact", "failures"):  # fmt: skip
                setattr(total, name, getattr(total, name) + getattr(t, name))
    if not outcome.faults:
        return "\n".join(rows)
    rows += ["", "| attack | times | stopped or refused in one sentence | exact, at once or "
             "afterwards | went on with what was left | failures |", "|---|---|---|---|---|---|"]  # fmt: skip
    rows += [
        f"| {name} | {f.times} | {f.refused} | {f.exact} | {f.went_on} | {len(f.failures)} |"
        for name, f in outcome.faults.items()
    ]
    return "\n".join(rows)


def write(page: Path, text: str) -> None:
    """Put tables into the place that a page has for them."""
    before, first, rest = page.read_text().partition(MARKS[0])
    _, second, after = rest.partition(MARKS[1])
    if not (first and second):
        raise ValueError(f"{page} has no place for the tables: it needs the lines {MARKS}")
    page.write_text(before + first + text + "\n" + second + after)
