"""Running entries: training, then evaluations, then data, picture and page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from rich.console import Console

from amago.baselines.catalogue import find_method
from amago.reproduce.claims.claim import Claim
from amago.reproduce.claims.holds import verdicts
from amago.reproduce.entry import Entry, Experiment, Leaderboard, Measurement, Probe
from amago.reproduce.listing import Where
from amago.reproduce.plan import (
    Planned,
    command,
    missing_presets,
    probe_command,
    resolve,
)
from amago.reproduce.publish import publish, publish_board, publish_measurement
from amago.sweep.jobs import Command, Job, Step, next_step
from amago.sweep.queue import Outcome


class _Queue(Protocol):
    """Runs jobs as the command line says: so many at a time, on these devices."""

    def __call__(self, jobs: Sequence[Job], *, command: Command) -> Outcome: ...


def reproduce(
    chosen: Mapping[str, Entry],
    where: Where,
    queue: _Queue,
    *,
    named: bool,
    console: Console,
    start: Command = command,
) -> int:
    """Run what is missing of some entries in a queue and publish them; the exit code.

    Measurements that were made before are repeated only where the entry was `named`. `start` says
    how a run is started: beside this one, or on a cluster.
    """
    experiments = {name: e for name, e in chosen.items() if isinstance(e, Experiment)}
    runs = {name: _runs(name, e, where, console) for name, e in experiments.items()}
    code = _train([run.job for group in runs.values() for run in group], queue, start)
    if code < 128:
        code = max(code, _probe(experiments, runs, queue))
    if code >= 128:
        return code
    for name, experiment in experiments.items():
        _say(name, publish(experiment, where.scale, runs[name], where.out), console)
    for name, entry in chosen.items():
        if isinstance(entry, Measurement) and (named or not _measured(entry, where)):
            folder = where.out / entry.claim / "data"
            subprocess.run([sys.executable, "-m", entry.module, str(folder)], check=True)
            _say(name, publish_measurement(entry, where.out), console)
        elif isinstance(entry, Leaderboard) and Path(entry.runs).is_dir():
            console.print(f"{name}: {publish_board(entry, where.out)}", highlight=False)
    return code


def _runs(name: str, experiment: Experiment, where: Where, console: Console) -> list[Planned]:
    """The runs that can be made, and a word on those that cannot."""
    missing = missing_presets(experiment, where.scale)
    if missing:
        console.print(f"{name}: left out, there is no preset {', '.join(missing)}")
        return []
    runs = where.runs(experiment)
    for run in runs:  # a bad setting should fail here, not once per run
        resolve(run.job.preset, [f"{key}={value}" for key, value in run.job.overrides.items()])
    return runs


def _keeps_weights(method: str) -> bool:
    """Whether a run can be played after training: not every baseline keeps its networks."""
    return not method or find_method(method).keeps_weights


def _train(jobs: list[Job], queue: _Queue, start: Command) -> int:
    if not jobs:
        return 0
    shared = list({job.run_dir: job for job in jobs}.values())
    return queue(shared, command=start).exit_code


def _probe(
    experiments: Mapping[str, Experiment],
    runs: Mapping[str, list[Planned]],
    queue: _Queue,
) -> int:
    """Evaluate every complete run as its experiments ask for."""
    asked: dict[Path, tuple[Path, Probe]] = {}
    jobs: dict[Path, Job] = {}
    for name, experiment in experiments.items():
        for run in runs[name]:
            if next_step(run.job) == "skip" and _keeps_weights(run.arm.baseline):
                for probe in experiment.probes:
                    job = run.probe(probe)
                    asked[job.run_dir], jobs[job.run_dir] = (run.job.run_dir, probe), job
    if not jobs:
        return 0

    def evaluate(job: Job, _: Step) -> list[str]:
        return probe_command(*asked[job.run_dir], job.run_dir)

    return queue(list(jobs.values()), command=evaluate).exit_code


def _measured(entry: Measurement, where: Where) -> bool:
    return (where.out / entry.claim / "data").is_dir()


def _say(name: str, claim: Claim | None, console: Console) -> None:
    if claim is None:
        console.print(f"{name}: no run is complete", highlight=False)
        return
    console.print(f"{name}: {claim.folder / 'README.md'}", highlight=False, soft_wrap=True)
    for verdict in verdicts(claim):
        text = str(verdict).replace("**", "")
        console.print(f"  {text}", highlight=False, markup=False, soft_wrap=True)
