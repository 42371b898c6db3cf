"""`amago sweep`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from amago.cli.baseline import baseline_options
from amago.cli.parsing import gathered, parse
from amago.cli.placing import placed
from amago.cli.train import train_options
from amago.sweep.jobs import OWN, amago_command, flags, method_of


@dataclass(frozen=True)
class SweepOptions:
    """Run presets over seeds in a resumable queue, then compare them."""

    presets: tyro.conf.Positional[tuple[str, ...]]
    """The presets to run."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds of every preset."""
    set: tuple[str, ...] = ()
    """Settings changed in all runs, as key=value; method=NAME trains a baseline instead."""
    grid: tuple[str, ...] = ()
    """Values to compare, as key=value,value; several --grid multiply. method=amago,recurrent-ppo
    compares methods (`amago baseline --list`)."""
    ablate: tuple[str, ...] = ()
    """Ablations of the paper in all runs; `amago presets --ablations` lists them."""
    jobs: int = 2
    """Runs at a time, each on one thread."""
    devices: tuple[str, ...] = ()
    """GPUs to hand out to the runs, in turn: 0 1. Each run sees its own alone, as cuda:0. On a
    cluster Ray hands them out: --set run.device=cuda gives every run one."""
    root: Path = Path("runs/sweep")
    """Folder of the sweep; sweeps that share one are compared with each other."""
    address: Annotated[str, tyro.conf.arg(name="scale.address")] = ""
    """Spread the runs over a Ray cluster: auto, HOST:PORT or local, as for `amago train`."""
    export: Path | None = None
    """Also copy the runs, without checkpoints and replay, to this claim: results/NAME."""


def sweep(arguments: Sequence[str]) -> int:
    given = gathered("--grid", gathered("--set", arguments))
    options = parse(SweepOptions, given, "amago sweep")
    from amago.report.sweeps import summarise_sweep
    from amago.reproduce.claims.export import export
    from amago.sweep.grid import combinations
    from amago.sweep.jobs import parse_overrides, with_ablations
    from amago.sweep.sweep import plan, record_command, run_jobs

    shared = with_ablations(options.set, options.ablate)
    arms = [[*shared, *chosen] for chosen in combinations(options.grid)]
    for name in options.presets:  # a bad setting should fail here, not once per run
        for changes in arms:
            check_settings(name, parse_overrides(changes))
    jobs = [
        job
        for seed in options.seeds or [None]
        for changes in arms
        for job in plan(options.presets, [] if seed is None else [seed], changes, options.root)
    ]
    record_command(options.root, ["amago", "sweep", *arguments])
    command = placed(options.address, amago_command, options.devices)
    outcome = run_jobs(jobs, options.jobs, options.root, command=command, devices=options.devices)
    if outcome.exit_code == 0 or outcome.done:
        summarise_sweep(options.root)
        if options.export is not None:
            export(options.root, options.export)
    return int(outcome.exit_code)


def check_settings(preset: str, overrides: Mapping[str, str]) -> None:
    """Refuse what the run of a method would refuse."""
    method, settings = method_of(overrides)
    if method == OWN:
        train_options(preset, flags(settings))
    else:
        baseline_options(method, preset, flags(settings))
