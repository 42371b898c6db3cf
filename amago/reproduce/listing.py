"""What `amago reproduce --list` shows: every entry, its predicted hours, and what has been run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from amago.reproduce.claims.claim import read_claim
from amago.reproduce.claims.holds import verdicts
from amago.reproduce.entry import Entry, Experiment, Leaderboard, Measurement, Scale
from amago.reproduce.pace import Pace
from amago.reproduce.plan import Planned, missing_presets, planned, resolve
from amago.sweep.jobs import next_step

_STATES = {"holds": "holds", "fails": "does not hold", "open": "not known yet"}
_NO_FIGURE = "not in the paper"


@dataclass(frozen=True)
class Where:
    """Which runs are meant, and the folders of runs and of results."""

    root: Path
    out: Path
    scale: Scale = "cpu"
    seeds: tuple[int, ...] = ()
    """Unset: those of each entry."""
    changes: tuple[str, ...] = ()

    def runs(self, experiment: Experiment) -> list[Planned]:
        seeds = self.seeds or experiment.seeds
        return planned(experiment, self.scale, seeds, self.root, self.changes)


def _hours(experiment: Experiment, where: Where, known: Mapping[str, Pace]) -> float | None:
    """Hours of one core for all runs; None where no run of a preset was ever timed."""
    total = 0.0
    for run in where.runs(experiment):
        settings = [f"{key}={value}" for key, value in run.job.overrides.items()]
        config = resolve(run.job.preset, settings)
        pace = known.get(run.job.preset)
        if pace is None and config.run.max_minutes is None:
            return None
        limit = config.run.max_minutes or 0.0
        total += 60 * limit if pace is None else pace.seconds(config)
    return total / 3600


def forecast(entries: Mapping[str, Entry], where: Where, known: Mapping[str, Pace]) -> str:
    """What is about to be run, in one line."""
    experiments = [
        entry
        for entry in entries.values()
        if isinstance(entry, Experiment) and not missing_presets(entry, where.scale)
    ]
    jobs = {run.job.run_dir: run.job for entry in experiments for run in where.runs(entry)}
    left = sum(next_step(job) != "skip" for job in jobs.values())
    predicted = [_hours(entry, where, known) for entry in experiments]
    total = sum(value for value in predicted if value is not None)
    more = " and those never timed" if None in predicted else ""
    return (
        f"{left} of {len(jobs)} runs are left; all of them take about {total:.1f} hours of one "
        f"core{more}. Ctrl-C stops, the same command goes on."
    )


def table(entries: Mapping[str, Entry], where: Where, known: Mapping[str, Pace]) -> Group:
    """All entries, one line each."""
    lines = Table(title="Figures and tables of the paper", title_justify="left",
                  box=box.SIMPLE_HEAD, pad_edge=False)  # fmt: skip
    lines.add_column("name", no_wrap=True)
    lines.add_column("paper", overflow="fold")
    for column in ("runs done", "hours"):
        lines.add_column(column, justify="right", no_wrap=True)
    lines.add_column("claim", no_wrap=True)
    for name, entry in entries.items():
        lines.add_row(name, entry.paper or _NO_FIGURE, *_cells(entry, where, known))
    note = (
        "hours: of one core for all runs, from the pace of earlier runs; ?: never timed. "
        "`amago reproduce NAME --list` shows arms and budgets."
    )
    return Group(lines, Text(note))


def details(name: str, entry: Entry, where: Where, known: Mapping[str, Pace]) -> Group:
    """One entry: what it asks, its arms, its budget, and what must hold."""
    runs, predicted, state = _cells(entry, where, known)
    text = [f"{name}: {entry.paper or _NO_FIGURE}"]
    if isinstance(entry, Experiment):
        seeds = where.seeds or entry.seeds
        text += [
            entry.question,
            f"arms: {', '.join(_arm_names(entry))}",
            f"seeds: {' '.join(map(str, seeds))}; runs done: {runs}; hours: {predicted}",
            f"budget of a run: {_budget(entry, where)}",
            f"results: {where.out / entry.folder(where.scale)}: {state or 'none yet'}",
            *(f"must hold: {statement}" for statement in entry.holds),
        ]
    elif isinstance(entry, Measurement):
        text += [entry.question, f"measured by {entry.module}, about {entry.minutes:g} minutes"]
    elif isinstance(entry, Leaderboard):
        text += [f"from the runs in {entry.runs}, which `amago board` makes"]
    else:
        text += [entry.shows, f"see {entry.where}"]
    return Group(*map(Text, text))


def _cells(entry: Entry, where: Where, known: Mapping[str, Pace]) -> tuple[str, str, str]:
    """Runs done, hours, and whether the claim holds."""
    if isinstance(entry, Measurement):
        measured = (where.out / entry.claim / "data").is_dir()
        return "measured" if measured else "–", f"{entry.minutes / 60:.1f}", ""
    if not isinstance(entry, Experiment):
        return "–", "–", ""
    if missing_presets(entry, where.scale):
        return "–", "–", f"no {where.scale} preset"
    runs = where.runs(entry)
    done_runs = sum(next_step(run.job) == "skip" for run in runs)
    predicted = _hours(entry, where, known)
    published = _published(entry, where)
    done = max(done_runs, len(published[0]))
    return f"{done} of {len(runs)}", "?" if predicted is None else f"{predicted:.1f}", published[1]


def _published(entry: Experiment, where: Where) -> tuple[Sequence[object], str]:
    """Runs of a claim in the results folder, and what they say of it."""
    folder = where.out / entry.folder(where.scale)
    if not (folder / "data").is_dir():
        return (), ""
    claim = read_claim(folder)
    states = {verdict.state for verdict in verdicts(claim)}
    worst = next((state for state in ("fails", "open", "holds") if state in states), "")
    return [run for arm in claim.arms for run in arm.runs], _STATES.get(worst, "")


def _arm_names(entry: Experiment) -> list[str]:
    tasks = list(dict.fromkeys(arm.task for arm in entry.arms if arm.task))
    names = list(dict.fromkeys(arm.name for arm in entry.arms))
    return [*names, *([f"each in {len(tasks)} tasks"] if len(tasks) > 1 else [])]


def _budget(entry: Experiment, where: Where) -> str:
    """The budget of a run; arms may have different ones."""
    said: dict[str, None] = {}
    for run in where.runs(entry):
        settings = [f"{key}={value}" for key, value in run.job.overrides.items()]
        config = resolve(run.job.preset, settings).run
        text = f"{config.epochs} epochs of {config.updates_per_epoch} updates"
        limit = "" if config.max_minutes is None else f", at most {config.max_minutes:g} minutes"
        said[text + limit] = None
    return "; ".join(said)
