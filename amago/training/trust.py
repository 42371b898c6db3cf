"""What a run folder may ask for when nobody vouches for it.

A folder may come from a stranger. Reading it runs no code and writes nowhere else: modules that
its config.json names are imported, and services that it names are used, only when the user
says so.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from amago.config import Config, override

_LOG = logging.getLogger("amago")
_MOST = 1_000_000
"""Largest number among the arguments of an environment that nobody vouches for."""


def check_links(folder: Path) -> None:
    """ValueError if anything inside a run folder leads out of it."""
    for path in _links(folder):
        raise ValueError(
            f"{path} is a symbolic link, and links inside a run folder are not followed; replace "
            "it by what it points to"
        )


def check_env(name: object, config: Config, *, trust: bool, named: bool = False) -> None:
    """ValueError if an environment that a folder names would run code or fill the memory.

    `named`: the user has named the environment, so the folder's own is not made; its wrappers are.
    """
    if trust:
        return
    for wrapper in config.env.wrappers:
        raise ValueError(
            f"{name} names the wrapper {wrapper!r}, which would be imported and run; if you know "
            "this run, add --trust (trust=True from Python)"
        )
    if named:
        return
    for env_id in (config.env.id, *config.env.ids):
        module, colon, _ = env_id.partition("?")[0].rpartition(":")
        if colon:
            raise ValueError(
                f"{name} names an environment of the module {module!r}, which would be imported "
                "and run; if you know this run, add --trust (trust=True from Python)"
            )
    for key, value in config.env.kwargs.items():
        if isinstance(value, int | float) and not abs(value) <= _MOST:
            raise ValueError(
                f"{name} asks for an environment with {key}={value}; if you know this run, add "
                "--trust (trust=True from Python)"
            )


def without_services(name: object, config: Config, *, trust: bool) -> Config:
    """The settings of a resumed run; nothing is sent to where its folder says."""
    project = config.run.wandb_project
    if trust or not project:
        return config
    _LOG.warning(
        f"{name} names the Weights & Biases project {project!r}, to which nothing is sent now; "
        "add --trust (trust=True from Python) if it is yours"
    )
    return override(config, {"run.wandb_project": ""})


def trust_flag(config: Config) -> str:
    """What a command for a run of one's own needs at its end, because of what the folder names."""
    try:
        check_env("the run", config, trust=False)
    except ValueError:
        return " --trust"
    return " --trust" if config.run.wandb_project else ""


def check_address(name: object, config: Config, *, trust: bool) -> None:
    """ValueError if a folder would connect this process to a Ray cluster elsewhere, which could
    run code here."""
    address = config.scale.address
    if not trust and address not in ("", "auto", "local"):
        raise ValueError(
            f"{name} names the Ray cluster {address}, to which nothing connects unless you say so: "
            f"add --scale.address {address} or --trust"
        )


def _links(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(root) / name
            if path.is_symlink():
                yield path
