"""Shapes and types of the networks and the learning rule are checked in every test."""

from __future__ import annotations

from jaxtyping import install_import_hook

with install_import_hook(["amago.nets", "amago.agent"], "beartype.beartype"):
    pass
