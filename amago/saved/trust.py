"""What a run folder may ask for when nobody vouches for it.

A folder may come from a stranger. Reading it runs no code and writes nowhere else: modules that
its config.json names are imported, and services that it names are used, only when the user
says so.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from amago.config import Config, override
from amago.envs.joint import joint_tasks
from amago.envs.settings import EnvSettings

_LOG = logging.getLogger("amago")
_MOST = 1_000_000
"""Largest number among the arguments of an environment that nobody vouches for."""


def check_files(folder: Path) -> None:
    """ValueError if a run folder holds anything but files and folders.

    A link leads out of it, a named pipe lets a reader wait for ever.
    """
    for path, mode in _modes(folder):
        if stat.S_ISLNK(mode):
            raise ValueError(
                f"{path} is a symbolic link, and links inside a run folder are not followed; "
                "replace it by what it points to"
            )
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise ValueError(
                f"{path} is neither a file nor a folder (it is a pipe, a socket or a device); "
                "remove it, and restore what belongs there from a copy"
            )


def check_env(name: object, env: EnvSettings, *, trust: bool, named: bool = False) -> None:
    """ValueError if an environment that a folder names would run code or fill the memory.

    `named`: the user has named the environment, so the folder's own is not made; its wrappers are.
    """
    if trust:
        return
    for wrapper in env.wrappers:
        raise ValueError(
            f"{name} names the wrapper {wrapper!r}, which would be imported and run; if you know "
            "this run, add --trust (trust=True from Python)"
        )
    if named:
        return
    for env_id in (env.id, *env.ids):
        module, colon, _ = env_id.partition("?")[0].rpartition(":")
        if colon:
            raise ValueError(
                f"{name} names an environment of the module {module!r}, which would be imported "
                "and run; if you know this run, add --trust (trust=True from Python)"
            )
    for settings in (env, *(task.settings for task in joint_tasks(env))):
        for key, value in settings.kwargs.items():
            if any(not abs(number) <= _MOST for number in _numbers(value)):
                raise ValueError(
                    f"{name} asks for an environment with {key}={value}; if you know this run, "
                    "add --trust (trust=True from Python)"
                )


def _numbers(value: Any) -> Iterator[float]:
    """The numbers of an argument, however deep in lists."""
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, dict):
        yield from _numbers(list(value.values()))


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
        check_env("the run", config.env, trust=False)
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


def _modes(folder: Path) -> Iterator[tuple[Path, int]]:
    """Everything inside a folder, and what kind of thing it is."""
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(root) / name
            with contextlib.suppress(FileNotFoundError):  # a trainer may have removed it meanwhile
                yield path, path.lstat().st_mode
