"""`amago tune`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from amago.cli.parsing import gathered, parse
from amago.cli.train import train_options
from amago.envs.catalogue import find_preset

if TYPE_CHECKING:
    from amago.config import Config
    from amago.sweep.space import Dimension


@dataclass(frozen=True)
class TuneOptions:
    """Search settings with Optuna in a resumable queue; bad runs end early."""

    preset: tyro.conf.Positional[str]
    """The preset to tune."""
    over: tuple[str, ...] = ()
    """What to search: key=low..high, key=low..high:log, or key=a,b,c."""
    trials: int = 20
    """Runs in all, those of earlier sessions included."""
    set: tuple[str, ...] = ()
    """Settings changed in all runs, as key=value."""
    seed: int = 0
    """Seed of all runs and of the search."""
    jobs: int = 2
    """Runs at a time, each on one thread."""
    devices: tuple[str, ...] = ()
    """GPUs to hand out to the runs, in turn, as for `amago sweep`: 0 1."""
    pruning: bool = True
    """End runs early that are below the median of earlier ones."""
    root: Path = Path("runs/tune")
    """Folder of the search; the same command goes on with what is there."""


def tune(arguments: Sequence[str]) -> int:
    given = gathered("--over", gathered("--set", arguments))
    options = parse(TuneOptions, given, "amago tune")
    if options.trials < 1:
        raise ValueError(f"--trials must be at least 1, got {options.trials}")
    find_preset(options.preset)
    from rich.console import Console

    from amago.report.tuning import tuning_report
    from amago.sweep.space import parse_space
    from amago.sweep.sweep import record_command, run_jobs
    from amago.sweep.tune import Tuner, open_study

    space = parse_space(options.over)
    config = _check(options, space)
    study = open_study(options.root, options.seed, config.run.epochs, options.pruning)
    tuner = Tuner(
        study, options.preset, options.seed, options.set, space, options.trials, options.root
    )
    record_command(options.root, ["amago", "tune", *arguments])
    outcome = run_jobs(
        tuner.take_up(), options.jobs, options.root, devices=options.devices, feed=tuner.feed
    )
    tuning_report(options.root, options.preset, study, options.set, Console())
    return int(outcome.exit_code)


def _check(options: TuneOptions, space: Sequence[Dimension]) -> Config:
    """A bad setting should fail here, not once per run; the settings of one of the runs."""
    from amago.sweep.jobs import flags, parse_overrides

    examples = [[f"{each.key}={value}" for value in each.examples()] for each in space]
    for row in itertools.zip_longest(*examples):
        drawn = [value or known[0] for value, known in zip(row, examples, strict=True)]
        changes = parse_overrides([*options.set, *drawn])
        config = train_options(options.preset, flags(changes)).config
    return config
