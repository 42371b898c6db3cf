"""Shapes and types of the networks and the learning rule are checked in every test."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from multiprocessing import forkserver

import pytest
from jaxtyping import install_import_hook

with install_import_hook(["amago.nets", "amago.agent"], "beartype.beartype"):
    pass


@pytest.fixture(scope="module")
def quick_collectors() -> None:
    """Collectors start from a process that has imported torch, which takes them seconds each."""
    forkserver._forkserver._stop()  # one that runs has imported what others needed
    multiprocessing.get_context("forkserver").set_forkserver_preload(
        ["amago.scale.collect_processes"]
    )


@pytest.fixture(scope="module")
def no_curves() -> Iterator[None]:
    """Runs without curves.png: drawing takes longer than all else that tiny runs do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("amago.api.plot_run", lambda *_, **__: None)
        yield
