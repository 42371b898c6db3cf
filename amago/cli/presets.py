"""`amago presets`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import tyro

from amago.cli.parsing import parse
from amago.config import dotted
from amago.envs.catalogue import PRESETS, find_preset
from amago.presets.ablations import ABLATIONS

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class PresetsOptions:
    """List the presets, or print all settings of one."""

    name: tyro.conf.Positional[str | None] = None
    """A preset."""
    ablations: bool = False
    """List the paper's ablations and what each changes, for `amago train --ablate NAME`."""


def presets(arguments: Sequence[str]) -> int:
    options = parse(PresetsOptions, arguments, "amago presets")
    from rich.console import Console

    console = Console()
    if options.ablations:
        console.print(_ablations(console.width))
        return 0
    if options.name is None:
        table = _named("preset", "what it trains", "acts")
        for name, item in PRESETS.items():
            table.add_row(name, item.summary, "greedily" if item.config.agent.greedy else "sampled")
        console.print(table)
        return 0
    item = find_preset(options.name)
    console.print(f"[bold]{options.name}[/]: {item.summary}", highlight=False)
    acts = "takes the most likely action" if item.config.agent.greedy else "samples its actions"
    console.print(f"It {acts}, in training and in evaluations (agent.greedy).", highlight=False)
    for path, value in dotted(item.config).items():
        console.print(f"  {path} = {value!r}", highlight=False, markup=False, soft_wrap=True)
    return 0


def _named(name: str, *columns: str) -> Table:
    """A table whose first column, which people type, is never cut or broken."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(name, no_wrap=True)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _ablations(width: int) -> Table:
    table = _named("ablation", "what is left", "what it changes")
    # Settings are typed, too: they get their room first, values a line of their own if need be.
    room = max(len(key) for item in ABLATIONS.values() for key in item.changes)
    table.columns[1].max_width = max(16, width - room - max(map(len, ABLATIONS)) - 8)
    for name, item in ABLATIONS.items():
        lines = [(key, f"= {value!r}") for key, value in item.changes.items()]
        changes = (f"{k} {v}" if len(k) + 1 + len(v) <= room else f"{k}\n  {v}" for k, v in lines)
        table.add_row(name, item.summary, "\n".join(changes))
    return table
