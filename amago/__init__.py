"""amago: agents that adapt to unfamiliar worlds from memory alone."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from amago.config import Config, override
from amago.envs.catalogue import preset

if TYPE_CHECKING:
    from amago.api import check_env, evaluate, load, resume, train

__version__ = "0.1.0"
__all__ = ["Config", "check_env", "evaluate", "load", "override", "preset", "resume", "train"]


def __getattr__(name: str) -> Any:
    """Import what needs torch only when it is used: help and listings stay instant."""
    if name in ("check_env", "evaluate", "load", "resume", "train"):
        return getattr(importlib.import_module("amago.api"), name)
    raise AttributeError(f"module 'amago' has no attribute {name!r}")
