"""What probes counted, beside what others measured with the authors' code in the same shape."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from amago.report.panels import PALETTE
from amago.report.tables import number
from amago.reproduce.claims.claim import Claim
from amago.reproduce.claims.markdown import markdown, wrapped
from amago.reproduce.claims.probes import probe_score
from amago.reproduce.claims.scores import known, mean
from amago.reproduce.entry import Experiment
from amago.reproduce.published import AUTHORS_STEPS, Published, authors_scores
from amago.reproduce.registry import by_folder
from amago.reproduce.views.curves import progress
from amago.reproduce.views.figure import Panel, draw_panels, styles_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_THEIRS = "the authors' code"
_SOURCE = (
    "The authors' code: amago 3.4.0, trained by others (github Jiaweeeeeen/RSM-ICLR, read "
    "second-hand), 3 seeds, the last checkpoint, greedy, 256 worlds that training does not meet, "
    f"after {AUTHORS_STEPS:,} environment steps."
)


def draw(claim: Claim, path: Path) -> None:
    """Training, and one panel per probe."""
    styles = styles_of(claim)
    drawn = [progress(claim, task, arms, styles) for task, arms in claim.tasks.items()]
    draw_panels([*drawn, *(_panel(claim, probe) for probe in _probes(claim))], path)


def table(claim: Claim) -> str:
    """Every probe and arm: our mean and seeds, random play, and what others have."""
    rows = []
    for probe in _probes(claim):
        theirs = authors_scores().get(probe, {})
        for name in _names(claim, probe):
            ours = _seeds(claim, probe, name)
            cells = [_mean_and_seeds(ours), number(_random(claim, probe, name))]
            rows.append([probe, name, *cells, _with_interval(theirs.get(name))])
    header = ["probe", "arm", "ours: mean (seeds)", "random play", _THEIRS]
    steps = mean([(run.result or {}).get("env_steps") for arm in claim.arms for run in arm.runs])
    used = "" if steps is None else f" Ours: {round(steps):,} environment steps a run."
    return f"{markdown(header, rows)}\n\n{wrapped(_SOURCE + used)}"


def _panel(claim: Claim, probe: str) -> Panel:
    names, theirs = _names(claim, probe), authors_scores().get(probe, {})

    def draw(axes: Axes) -> None:
        for row, name in enumerate(names):
            if seeds := _seeds(claim, probe, name):
                axes.barh(row, fmean(seeds), height=0.6, color=PALETTE[0], alpha=0.6,
                          label="ours, mean" if row == 0 else None)  # fmt: skip
                axes.plot(seeds, [row] * len(seeds), ".", color=PALETTE[0],
                          label="ours, seeds" if row == 0 else None)  # fmt: skip
            if (other := theirs.get(name)) is not None:
                low, high = other.low or other.value, other.high or other.value
                axes.errorbar(other.value, row, xerr=[[other.value - low], [high - other.value]],
                              marker="D", color="black", capsize=3, linestyle="none",
                              label=_THEIRS if row == 0 else None)  # fmt: skip
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.set_ylim(len(names) - 0.4, -0.6)  # the first one on top
        axes.set_xlim(left=0.0)
        axes.set(title=probe)

    return draw


def _probes(claim: Claim) -> list[str]:
    found = by_folder(claim.name)
    entry = None if found is None else found[1]
    return [probe.name for probe in entry.probes] if isinstance(entry, Experiment) else []


def _names(claim: Claim, probe: str) -> list[str]:
    """Our arms, then what others have beside them."""
    return list(
        dict.fromkeys([*(arm.name for arm in claim.arms), *authors_scores().get(probe, {})])
    )


def _seeds(claim: Claim, probe: str, name: str) -> list[float]:
    runs = [run for arm in claim.arms if arm.name == name for run in arm.runs]
    return known(probe_score(run, probe) for run in runs)


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
