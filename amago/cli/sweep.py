"""`amago sweep`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from amago.cli.parsing import gathered, parse
from amago.cli.train import train_options


@dataclass(frozen=True)
class SweepOptions:
    """Run presets over seeds in a resumable queue, then compare them."""

    presets: tyro.conf.Positional[tuple[str, ...]]
    """The presets to run."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds of every preset."""
    set: tuple[str, ...] = ()
    """Settings changed in all runs, as key=value."""
    ablate: tuple[str, ...] = ()
    """Ablations of the paper in all runs; `amago presets --ablations` lists them."""
    jobs: int = 2
    """Runs at a time, each on one thread."""
    root: Path = Path("runs/sweep")
    """Folder of the sweep; sweeps that share one are compared with each other."""
    export: Path | None = None
    """Also copy the runs, without checkpoints and replay, to this claim: results/NAME."""


def sweep(arguments: Sequence[str]) -> int:
    options = parse(SweepOptions, gathered("--set", arguments), "amago sweep")
    from amago.report.claims.export import export
    from amago.report.sweeps import summarise_sweep
    from amago.sweep.jobs import flags, parse_overrides, with_ablations
    from amago.sweep.sweep import plan, record_command, run_jobs

    changes = with_ablations(options.set, options.ablate)
    for name in options.presets:  # a bad setting should fail here, not once per run
        train_options(name, flags(parse_overrides(changes)))
    jobs = plan(options.presets, options.seeds, changes, options.root)
    record_command(options.root, ["amago", "sweep", *arguments])
    outcome = run_jobs(jobs, options.jobs, options.root)
    if outcome.exit_code == 0 or outcome.done:
        summarise_sweep(options.root)
        if options.export is not None:
            export(options.root, options.export)
    return int(outcome.exit_code)
