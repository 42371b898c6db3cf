"""What a page may ask for; everything else is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

MAX_BYTES = 4096
"""Of one message."""
_MAX_TEXT = 300
_MAX_SEED = 2**31 - 1

_Check = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_TEXT and value.isprintable()


def _between(low: int, high: int) -> _Check:
    return lambda value: type(value) is int and low <= value <= high


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _player(value: Any) -> bool:
    return value in ("agent", "you")


_REQUESTS: dict[str, dict[str, _Check]] = {
    "begin": {
        "agent": _text,
        "seed": _between(0, _MAX_SEED),
        "player": _player,
        "instruction": _text,
        "dark": _flag,
    },
    "step": {},
    "move": {"move": _between(0, 255)},
    "back": {},
    "wipe": {},
    "change": {},
    "transplant": {},
    "look": {"index": _between(0, 10_000)},
    "head": {"layer": _between(-1, 255), "head": _between(-1, 255)},
    "parse": {"text": _text},
}
"""The fields of every request, all of them required, and what their values must be."""


def read(text: str) -> dict[str, Any]:
    """A request, checked; ValueError says what is wrong with it."""
    if len(text) > MAX_BYTES:
        raise ValueError(f"a message has at most {MAX_BYTES} characters")
    try:
        request = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError("a message is one JSON object") from error
    if not isinstance(request, dict):
        raise ValueError("a message is one JSON object")
    kind = request.get("type")
    fields = _REQUESTS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise ValueError(f"a message's type is one of {', '.join(_REQUESTS)}")
    if set(request) != {"type", *fields}:
        wanted = ", ".join(fields) or "nothing"
        raise ValueError(f"a message of type {kind} has {wanted} besides its type")
    for name, fits in fields.items():
        if not fits(request[name]):
            raise ValueError(f"a message of type {kind} has a wrong {name}")
    return request
