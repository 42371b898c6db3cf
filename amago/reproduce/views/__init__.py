"""Pictures of claims, one file per kind, each with the table that belongs to it.

A view has `draw(claim, path)`. It may have `table(claim)`, further Markdown for the claim's page,
and NEEDS: beginnings of the names of metrics that exported runs must keep for it.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from amago.checks import did_you_mean

if TYPE_CHECKING:
    from types import ModuleType

    from amago.reproduce.claims.claim import Claim


def _view_names() -> list[str]:
    """All kinds of pictures."""
    return [item.name for item in pkgutil.iter_modules(__path__) if item.name != "figure"]


def draw(claim: Claim, path: Path) -> None:
    """The picture of a claim."""
    _find(claim.view).draw(claim, path)


def table(claim: Claim) -> str:
    """What a view adds to the page of a claim; empty if nothing."""
    found = getattr(_find(claim.view), "table", None)
    return "" if found is None else str(found(claim))


def needs(view: str) -> tuple[str, ...]:
    """Beginnings of the names of metrics that a view reads beside the scores."""
    return tuple(getattr(_find(view), "NEEDS", ()))


def _find(name: str) -> ModuleType:
    if name not in _view_names():
        hint = did_you_mean(name, _view_names())
        raise ValueError(f"no view is called {name!r}; {hint}there are {', '.join(_view_names())}")
    return import_module(f"{__name__}.{name}")
