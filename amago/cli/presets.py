"""`amago presets`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tyro

from amago.cli.parsing import parse
from amago.presets import PRESETS, find


@dataclass(frozen=True)
class PresetsOptions:
    """List the presets, or print all settings of one."""

    name: tyro.conf.Positional[str | None] = None
    """A preset."""


def presets(arguments: Sequence[str]) -> int:
    options = parse(PresetsOptions, arguments, "amago presets")
    from rich.console import Console
    from rich.table import Table

    console = Console()
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


def _flat(tree: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in tree.items():
        nested = isinstance(value, dict) and name != "kwargs"
        rows += _flat(value, f"{prefix}{name}.") if nested else [(prefix + name, value)]
    return rows
