"""What probes counted, arm by arm, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from amago.report.tables import number
from amago.reproduce.claims.claim import Claim
from amago.reproduce.claims.markdown import markdown
from amago.reproduce.claims.probes import probe_score
from amago.reproduce.claims.scores import known, mean
from amago.reproduce.entry import Experiment
from amago.reproduce.published import Published
from amago.reproduce.registry import by_folder

Theirs = Mapping[str, Mapping[str, Published]]
"""Numbers of others by probe and arm."""


def probes_of(claim: Claim) -> list[str]:
    """The probes that an entry asks for."""
    found = by_folder(claim.name)
    entry = None if found is None else found[1]
    return [probe.name for probe in entry.probes] if isinstance(entry, Experiment) else []


def names_of(claim: Claim, others: Mapping[str, Published]) -> list[str]:
    """Our arms, then what others have beside them."""
    return list(dict.fromkeys([*(arm.name for arm in claim.arms), *others]))


def seeds_of(claim: Claim, probe: str, name: str) -> list[float]:
    """What an arm's seeds have."""
    runs = [run for arm in claim.arms if arm.name == name for run in arm.runs]
    return known(probe_score(run, probe) for run in runs)


def counted_table(claim: Claim, theirs: Theirs | None = None, whose: str = "") -> str:
    """Every probe and arm: our mean and seeds, random play, and what others have."""
    rows = []
    for probe in probes_of(claim):
        others = (theirs or {}).get(probe, {})
        for name in names_of(claim, others):
            ours = _mean_and_seeds(seeds_of(claim, probe, name))
            cells = [ours, number(_random(claim, probe, name))]
            cells += [_with_interval(others.get(name))] if theirs else []
            rows.append([probe, name, *cells])
    if not rows:
        return ""
    header = ["probe", "arm", "ours: mean (seeds)", "random play"]
    return markdown([*header, *([whose] if theirs else [])], rows)


def _random(claim: Claim, probe: str, name: str) -> float | None:
    runs = [run for arm in claim.arms if arm.name == name for run in arm.runs]
    return mean([probe_score(run, probe, "random") for run in runs])


def _mean_and_seeds(seeds: Sequence[float]) -> str:
    if len(seeds) < 2:
        return number(seeds[0]) if seeds else "–"
    return f"{number(fmean(seeds))} ({' '.join(map(number, seeds))})"


def _with_interval(other: Published | None) -> str:
    if other is None:
        return "–"
    interval = "" if other.low is None else f" [{number(other.low)}, {number(other.high)}]"
    return number(other.value) + interval
