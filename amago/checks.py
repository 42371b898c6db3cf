"""Checks that settings make of themselves; their errors name the flag."""

from __future__ import annotations

from typing import Any


def at_least(minimum: float, settings: Any, section: str, *names: str) -> None:
    """Refuse numbers below a minimum; unset (None) is fine."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and value < minimum:
            raise ValueError(f"{flag(section, name)} must be at least {minimum}, got {value}")


def flag(section: str, name: str) -> str:
    """A setting as the command line spells it."""
    return f"--{section}.{name.replace('_', '-')}"
