"""Packages that only some environments need."""

from __future__ import annotations

import importlib
from typing import Any


def need(module: str, extra: str) -> Any:
    """The module, or an error with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"this environment needs {error.name!r}, which is not installed: "
            f"pip install 'amago[{extra}]', or in a checkout of amago "
            f"pip install -c constraints.txt -e '.[{extra}]'"
        ) from error
