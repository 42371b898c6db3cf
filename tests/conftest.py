"""Shapes and types of the networks and the learning rule are checked in every test."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from multiprocessing import forkserver

import pytest
from jaxtyping import install_import_hook

# Tests run on all cores at once: more threads in each, or in its children, would only wait for
# each other. torch reads this when it is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

with install_import_hook(["amago.nets", "amago.agent"], "beartype.beartype"):
    pass


@pytest.fixture(scope="module")
def quick_children() -> None:
    """Collectors and workers start from a process that has imported amago and torch.

    Otherwise each of them spends seconds on imports.
    """
    forkserver._forkserver._stop()  # one that runs has imported less
    multiprocessing.get_context("forkserver").set_forkserver_preload(["amago.api"])
    forkserver.ensure_running()  # before amago asks for other imports


@pytest.fixture(scope="module")
def no_curves() -> Iterator[None]:
    """Runs without curves.png: drawing takes longer than all else that tiny runs do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("amago.api.plot_run", lambda *_, **__: None)
        yield
