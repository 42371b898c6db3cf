"""Names of the arms of a sweep for people: only what differs among them."""

from __future__ import annotations

import re
from collections.abc import Iterable

_BETWEEN = "__"
"""Parts of a group's folder: t-maze__memory=gru__optim.learning_rate=0.001."""
_CUT = re.compile(r"-[0-9a-f]{8}$")
"""The end of a folder whose name was too long: a digest of the whole name."""


def arm_names(groups: Iterable[str]) -> dict[str, str]:
    """A short name for every group's folder: parts that all groups share are left out, and so
    are sections of settings, and ends that were cut off, where the rest is clear without them."""
    parts = {group: group.split(_BETWEEN) for group in groups}
    shared = set.intersection(*map(set, parts.values())) if len(parts) > 1 else set()
    kept = {
        group: [part for part in own if part not in shared] or own[:1]
        for group, own in parts.items()
    }
    whole = {group: [part for part in own if not _CUT.search(part)] for group, own in kept.items()}
    if all(whole.values()) and len(set(map(tuple, whole.values()))) == len(whole):
        kept = whole
    keys = {part.partition("=")[0] for own in kept.values() for part in own if "=" in part}
    short = {key: key.rpartition(".")[2] for key in keys}
    clear = {key: s for key, s in short.items() if list(short.values()).count(s) == 1}
    return {
        group: ", ".join(_shortened(part, clear) for part in own) for group, own in kept.items()
    }


def _shortened(part: str, clear: dict[str, str]) -> str:
    key, equals, value = part.partition("=")
    return f"{clear.get(key, key)}={value}" if equals else part
