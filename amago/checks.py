"""Checks that settings make of themselves, and hints for names that nobody knows."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from typing import Any


def at_least(minimum: float, settings: Any, section: str, *names: str) -> None:
    """Refuse numbers below a minimum; unset (None) is fine."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and value < minimum:
            raise ValueError(f"{_flag(section, name)} must be at least {minimum}, got {value}")


def at_most(maximum: float, settings: Any, section: str, *names: str) -> None:
    """Refuse numbers above a maximum; unset (None) is fine."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and value > maximum:
            raise ValueError(f"{_flag(section, name)} must be at most {maximum}, got {value}")


def check_widths(settings: Any, section: str, name: str) -> None:
    """Refuse a list of layers that is empty, or has a layer without width."""
    widths = getattr(settings, name)
    if not widths or min(widths) < 1:
        raise ValueError(f"{_flag(section, name)} takes widths of at least 1, got {widths}")


def _flag(section: str, name: str) -> str:
    """A setting as the command line spells it."""
    return f"--{section}.{name.replace('_', '-')}"


def described(error: BaseException) -> str:
    """The kind and the words of an error; those of a user's class may fail to be made."""
    try:
        words = str(error)
    except Exception as failed:
        words = f"its text cannot be made ({type(failed).__name__})"
    return f"{type(error).__name__}: {words}".rstrip(": ")


def printable(text: str) -> str:
    """Text of unknown origin for a terminal: control characters are spelled out."""
    return "".join(
        character
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
        else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The closest known names as a question, for the middle of an error; empty if none is close."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}? " if close else ""
