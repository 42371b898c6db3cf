"""Packages that only some environments need."""

from __future__ import annotations

import ctypes.util
import importlib
import os
import sys
from typing import Any


def need(module: str, extra: str, what: str = "this environment") -> Any:
    """The module, or an error with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{what} needs {error.name!r}, which is not installed: "
            f"pip install 'amago[{extra}]', or in a checkout of amago "
            f"pip install -c constraints.txt -e '.[{extra}]'"
        ) from error


def render_without_display() -> None:
    """Let MuJoCo draw through EGL on a Linux machine without a screen; before its import."""
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform == "linux" and not screen and ctypes.util.find_library("EGL"):
        os.environ.setdefault("MUJOCO_GL", "egl")
