"""amago: agents that adapt to unfamiliar worlds from memory alone."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amago.api import evaluate, load, resume, train
    from amago.check.any_env import check_env
    from amago.config import Config, override
    from amago.envs.catalogue import preset
    from amago.handle import Run
    from amago.serving.predictor import Predictor
    from amago.training.hooks import Epoch

__version__ = "0.1.0"
__all__ = [
    "Config",
    "Epoch",
    "Predictor",
    "Run",
    "check_env",
    "evaluate",
    "load",
    "override",
    "preset",
    "resume",
    "train",
]
_LATE = {
    "Config": "amago.config",
    "override": "amago.config",
    "preset": "amago.envs.catalogue",
    "Epoch": "amago.training.hooks",
    "Predictor": "amago.serving.predictor",
    "Run": "amago.handle",
    "check_env": "amago.check.any_env",
    **dict.fromkeys(("evaluate", "load", "resume", "train"), "amago.api"),
}
"""What is imported only when it is used: help and listings stay instant."""


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(importlib.import_module(_LATE[name]), name)
    raise AttributeError(f"module 'amago' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
