"""`amago reproduce`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import tyro

from amago.cli.parsing import gathered, parse


@dataclass(frozen=True)
class ReproduceOptions:
    """Make figures and tables of the paper: train, evaluate, draw, write."""

    names: tyro.conf.Positional[tuple[str, ...]] = ()
    """Entries by name; without a name, all of them. `--list` shows them."""
    scale: Literal["cpu", "paper"] = "cpu"
    """Sizes: presets that learn on a CPU, or the paper's Tables 3 and 4 (DOMAIN/paper)."""
    seeds: tuple[int, ...] = ()
    """Seeds of every arm; unset: as each entry says."""
    list: bool = False
    """Show entries, predicted hours and what has been run, and run nothing."""
    jobs: int = 2
    """Runs at a time, each on one thread."""
    devices: tuple[str, ...] = ()
    """GPUs to hand out to the runs, in turn, as for `amago sweep`: 0 1."""
    address: Annotated[str, tyro.conf.arg(name="scale.address")] = ""
    """A Ray cluster on which the runs are trained: auto, or HOST:PORT; unset: here."""
    out: Path = Path("results")
    """Folder of claims; each gets data, a picture and a page."""
    root: Path = Path("runs/reproduce")
    """Folder of the runs. The same command goes on where it was stopped."""
    set: tuple[str, ...] = ()
    """Settings changed in all runs, as key=value: for a trial run."""


def reproduce(arguments: Sequence[str]) -> int:
    options = parse(ReproduceOptions, gathered("--set", arguments), "amago reproduce")
    from rich.console import Console

    from amago.cli.placing import placed
    from amago.reproduce import listing
    from amago.reproduce.pace import paces
    from amago.reproduce.plan import command
    from amago.reproduce.registry import choose
    from amago.reproduce.run import reproduce as run
    from amago.sweep import sweep

    chosen = choose(options.names)
    where = listing.Where(options.root, options.out, options.scale, options.seeds, options.set)
    console = Console()
    known = paces((options.out, options.root))
    if not options.list:
        console.print(listing.forecast(chosen, where, known), highlight=False)
        named = bool(options.names)
        queue = partial(
            sweep.run_jobs, num_parallel=options.jobs, root=options.root, devices=options.devices
        )
        start = placed(options.address, command, options.devices)
        return run(chosen, where, queue, named=named, console=console, start=start)
    if not options.names:
        console.print(listing.table(chosen, where, known))
    for name in options.names:
        console.print(listing.details(name, chosen[name], where, known))
    return 0
