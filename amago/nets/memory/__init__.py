"""Memories behind one interface.

A memory is a file here and an entry in `amago.nets.settings.MEMORIES`. One with settings of
its own also has a dataclass in that module and a field of `Config`; a width among them belongs
into `amago.presets.sizes`, too.
"""

from __future__ import annotations

from importlib import import_module

from amago.nets.memory.interface import Memory
from amago.nets.settings import MEMORIES


def find_memory(name: str) -> type[Memory]:
    """The class of a memory that `--memory` may name."""
    module, _, cls = MEMORIES[name].partition(":")
    found: type[Memory] = getattr(import_module(module), cls)
    return found
