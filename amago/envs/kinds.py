"""Whether the arguments of an environment are of the kinds that it declares."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_MOST = 1_000_000
"""Largest whole number: no world is larger, and a larger one would take the machine with it."""
_MOST_CHARACTERS = 60


def check_kinds(name: str, made_by: Callable[..., Any], kwargs: Mapping[str, Any]) -> None:
    """ValueError where a value is not what the annotation of its argument says."""
    check_not_nan(name, kwargs)
    hints = _hints(made_by)
    for key, value in kwargs.items():
        if key in hints and not _fits(value, hints[key]):
            raise _wrong(name, key, _spelled(hints[key]), value)


def check_not_nan(name: str, kwargs: Mapping[str, Any]) -> None:
    """ValueError where a value is not a number; all that can be said of others' environments."""
    for key, value in kwargs.items():
        if isinstance(value, float) and math.isnan(value):
            raise _wrong(name, key, "a number", value)


def _hints(made_by: Callable[..., Any]) -> dict[str, Any]:
    function = made_by.__init__ if isinstance(made_by, type) else made_by  # type: ignore[misc]
    try:
        return get_type_hints(function)
    except (TypeError, NameError, AttributeError):  # annotations of others, as they please
        return {}


def _fits(value: Any, kind: Any) -> bool:
    if get_origin(kind) in (Union, types.UnionType):
        return any(_fits(value, each) for each in get_args(kind))
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if kind is None or kind is type(None):
        return value is None
    if kind is bool:
        return isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MOST
    if kind is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and math.isfinite(value)
    return isinstance(value, str) if kind is str else True


def _spelled(kind: Any) -> str:
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(_spelled(each) for each in get_args(kind))
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    names = {int: f"a whole number up to {_MOST:,}", float: "a finite number", str: "text"}
    names |= {bool: "True or False", type(None): "None"}
    return names.get(kind, str(kind))


def _wrong(name: str, key: str, expected: str, value: Any) -> ValueError:
    shown = repr(value)
    shown = shown if len(shown) <= _MOST_CHARACTERS else shown[:_MOST_CHARACTERS] + "…"
    return ValueError(
        f"--env.kwargs.{key.replace('_', '-')} of {name} takes {expected}, got {shown}"
    )
