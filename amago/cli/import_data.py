"""`amago import`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from amago.cli.parsing import gathered, parse
from amago.cli.train import train_options


@dataclass(frozen=True)
class ImportOptions:
    """Put recorded experience into a run's replay, where it is never evicted."""

    kind: tyro.conf.Positional[Literal["npz", "minari", "run"]]
    """npz: files of arrays; minari: data sets by name or folder; run: replays of other runs."""
    sources: tyro.conf.Positional[tuple[str, ...]]
    """What to import."""
    run: Path
    """The run that gets it; made from --preset if it does not exist."""
    preset: str = "gym"
    """Preset of a new run."""
    set: tuple[str, ...] = ()
    """Settings of a new run, as key=value: env.id=CartPole-v1 rollout.offline_epochs=50."""
    seed: int = 0
    """Seed of a new run."""
    trust: bool = False
    """Import the module of an existing run's environment: the run is yours."""


def import_data(arguments: Sequence[str]) -> int:
    options = parse(ImportOptions, gathered("--set", arguments), "amago import")
    from amago.datasets.importing import import_into
    from amago.sweep.jobs import flags, parse_overrides
    from amago.training.start import create

    if not options.sources:
        raise ValueError("expected at least one file, data set or run to import, got none")
    made = not (options.run / "config.json").exists()
    if made:
        config = train_options(options.preset, flags(parse_overrides(options.set))).config
        create(options.run, config, options.seed, preset=options.preset).close()
    elif options.set:
        raise ValueError(f"{options.run} exists already: --set is for new runs; leave it out")
    try:
        trajectories, steps = import_into(
            options.run, options.kind, options.sources, trust=options.trust or made
        )
    except BaseException:
        if made:  # so that the corrected command finds no run in its way
            shutil.rmtree(options.run)
        raise
    print(f"{trajectories} trajectories, {steps} steps imported into {options.run}")
    print(f"train with: amago resume {options.run}")
    return 0
