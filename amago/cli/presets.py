"""`amago presets`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tyro

from amago.cli.parsing import parse
from amago.presets import PRESETS, find
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
    from rich.table import Table

    console = Console()
    if options.ablations:
        console.print(_ablations())
        return 0
    if options.name is None:
        table = Table("preset", "what it trains")
        for name, item in PRESETS.items():
            table.add_row(name, item.summary)
        console.print(table)
        return 0
    item = find(options.name)
    console.print(f"[bold]{options.name}[/]: {item.summary}", highlight=False)
    for path, value in _flat(dataclasses.asdict(item.make())):
        console.print(f"  {path} = {value!r}", highlight=False, markup=False, soft_wrap=True)
    return 0


def _ablations() -> Table:
    from rich.table import Table

    table = Table("ablation", "what is left", "what it changes")
    for name, item in ABLATIONS.items():
        changes = "\n".join(f"{key} = {value!r}" for key, value in item.changes.items())
        table.add_row(name, item.summary, changes)
    return table


def _flat(tree: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in tree.items():
        nested = isinstance(value, dict) and name != "kwargs"
        rows += _flat(value, f"{prefix}{name}.") if nested else [(prefix + name, value)]
    return rows
