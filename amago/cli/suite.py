"""`amago suite`."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from amago.cli.parsing import gathered, parse
from amago.cli.train import train_options

_PRESETS = ("popgym", "popgym/paper")


@dataclass(frozen=True)
class SuiteOptions:
    """Run the environments of a benchmark suite in a resumable queue, then score them."""

    preset: tyro.conf.Positional[str]
    """popgym, or popgym/paper."""
    ids: tuple[str, ...] = ("*",)
    """Environments by short name or pattern: '*Easy'. "paper": the 39 of the paper; by default
    the 42 without navigation."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds of every environment."""
    set: tuple[str, ...] = ()
    """Settings changed in all runs, as key=value."""
    ablate: tuple[str, ...] = ()
    """Ablations of the paper in all runs; `amago presets --ablations` lists them."""
    jobs: int = 2
    """Runs at a time, each on one thread."""
    devices: tuple[str, ...] = ()
    """GPUs to hand out to the runs, in turn, as for `amago sweep`: 0 1."""
    root: Path = Path("runs/suite")
    """Folder of the runs; arms that share one stand beside each other in the chart."""
    export: Path | None = None
    """Also copy the runs, without checkpoints and replay, to this claim: results/NAME."""


def suite(arguments: Sequence[str]) -> int:
    options = parse(SuiteOptions, gathered("--set", arguments), "amago suite")
    if options.preset not in _PRESETS:
        raise ValueError(f"no suite is called {options.preset!r}; there are {', '.join(_PRESETS)}")
    if not options.ids or not options.seeds:
        raise ValueError("expected at least one of --ids and of --seeds; leave a flag out instead")
    from rich.console import Console

    from amago.envs.registry import single_env
    from amago.envs.settings import EnvSettings
    from amago.report.suites import report_suite
    from amago.report.sweeps import summarise_sweep
    from amago.reproduce.claims.export import export
    from amago.sweep.jobs import flags, parse_overrides, with_ablations
    from amago.sweep.sweep import plan, record_command, run_jobs

    chosen = _choose(options.ids)
    changes = with_ablations(options.set, options.ablate)
    jobs = [
        job
        for seed in options.seeds
        for name in chosen
        for job in plan([options.preset], [seed], [f"env.id={name}", *changes], options.root)
    ]
    # A bad setting or a missing package should fail here, not once per run.
    train_options(options.preset, flags(parse_overrides(changes)))
    single_env(EnvSettings(id=f"popgym/{chosen[0]}")).close()
    record_command(options.root, ["amago", "suite", *arguments])
    outcome = run_jobs(jobs, options.jobs, options.root, devices=options.devices)
    if outcome.exit_code == 0 or outcome.done:
        summarise_sweep(options.root, Console(quiet=True))
        report_suite(options.root)
        if options.export is not None:
            export(options.root, options.export)
    return int(outcome.exit_code)


def _choose(patterns: Sequence[str]) -> list[str]:
    """Short names of the environments that patterns mean, in the order of the suite."""
    from amago.envs.domains.popgym import ALL_IDS, IDS, PAPER_IDS

    every = [name.removeprefix("popgym/") for name in ALL_IDS]
    default = [name.removeprefix("popgym/") for name in IDS]
    chosen: set[str] = set()
    for pattern in patterns:
        pattern = pattern.removeprefix("popgym/")
        if pattern == "paper":
            found = [name.removeprefix("popgym/") for name in PAPER_IDS]
        else:
            # Navigation is asked for by name only.
            found = [name for name in every if fnmatch.fnmatchcase(name, pattern)]
            found = [name for name in found if name in default or "Labyrinth" in pattern]
        if not found:
            raise ValueError(
                f"--ids {pattern!r} matches no environment of POPGym; "
                f"there are {', '.join(every)}, and patterns such as '*Easy'"
            )
        chosen.update(found)
    return [name for name in every if name in chosen]
