"""All entries, found in figures/: adding a claim means adding a file there."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from functools import cache
from importlib import import_module

from amago.checks import did_you_mean
from amago.reproduce import figures
from amago.reproduce.entry import PAPER_SCALE, Entry, Experiment, Measurement, Scale


@cache
def entries() -> dict[str, Entry]:
    """Every entry by its name, in the order of the paper."""
    found: dict[str, Entry] = {}
    for item in pkgutil.iter_modules(figures.__path__):
        module = import_module(f"{figures.__name__}.{item.name}")
        name = item.name.replace("_", "-")
        found |= module.ENTRIES if hasattr(module, "ENTRIES") else {name: module.ENTRY}
    return dict(sorted(found.items(), key=lambda item: _place(item[1].paper)))


def choose(names: Sequence[str]) -> dict[str, Entry]:
    """The entries of these names; all without a name."""
    known = entries()
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ValueError(
                f"no claim is called {name!r}; {hint}`amago reproduce --list` shows them all"
            )
    return {name: known[name] for name in names or known}


def by_folder(folder: str) -> tuple[str, Experiment | Measurement, Scale] | None:
    """The entry whose results are in a folder of this name, and their scale."""
    scale: Scale = "paper" if folder.endswith(PAPER_SCALE) else "cpu"
    claim = folder.removesuffix(PAPER_SCALE)
    for name, entry in entries().items():
        if isinstance(entry, Experiment | Measurement) and entry.claim == claim:
            return name, entry, scale
    return None


def _place(paper: str) -> tuple[int, int, str]:
    """Figures by number, then tables, then what the paper has not."""
    kind, _, rest = paper.partition(" ")
    number = int("".join(c for c in rest.split(",")[0].split(" ")[0] if c.isdigit()) or 0)
    return ({"Figure": 0, "Table": 1}.get(kind, 2), number, paper)
