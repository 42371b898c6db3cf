"""What `amago.train` may be called with: a preset's name or a Config, and settings by keyword."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from amago.checks import did_you_mean
from amago.config import Config, dotted, override
from amago.envs.catalogue import DOMAINS, preset
from amago.envs.in_process import name_of
from amago.envs.registry import MakeEnv, single_env
from amago.envs.vector_maker import OneLane


def resolve(
    config: Config | str, changes: Mapping[str, Any] | None, keywords: Mapping[str, Any]
) -> Config:
    """A preset by its name, or a Config, with settings replaced.

    `changes` have dotted names, {"optim.learning_rate": 1e-4}; `keywords` only the last part,
    learning_rate=1e-4, where that is enough to tell which one is meant.
    """
    if isinstance(config, str):
        config = preset(config)
    if not isinstance(config, Config):
        raise ValueError(
            "expected the name of a preset or a Config as the first argument, got "
            f"{type(config).__name__}; write amago.train('gym', env=...)"
        )
    short = {_full_name(name, config): value for name, value in keywords.items()}
    return override(config, {**short, **(changes or {})})


def _full_name(name: str, config: Config) -> str:
    """The dotted name of the one setting that is called so."""
    known = list(dotted(config))
    found = [path for path in known if path.rpartition(".")[2] == name]
    if len(found) == 1:
        return found[0]
    if found:
        wanted = " or ".join(f"set={{{path!r}: ...}}" for path in found)
        raise ValueError(f"several settings are called {name!r}; write {wanted}")
    hint = did_you_mean(name, [path.rpartition(".")[2] for path in known])
    raise ValueError(
        f"amago.train has no argument {name!r}, and no setting is called so; {hint}"
        "`amago presets NAME` lists them all"
    )


def run_name(config: Config, preset_name: str, env: MakeEnv | None = None) -> str:
    """What a run is called: its environment, or the preset that belongs to one."""
    if isinstance(env, type):
        return env.__name__
    if env is not None:
        with contextlib.closing(single_env(config.env, env)) as made:
            return made.name if isinstance(made, OneLane) else name_of(made)
    own = next((domain for domain in DOMAINS if preset_name in domain.presets), None)
    if own is not None and own.ids and config.env.id == preset(preset_name).env.id:
        return preset_name
    if config.env.ids:
        return preset_name or f"{len(config.env.ids)}-tasks"
    return config.env.id.rpartition(":")[2].rpartition("/")[2]


def new_run_dir(name: str, seed: int) -> Path:
    """runs/<name>-<seed>-<time>, with a number behind it if a run of the same second has it."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    first = Path("runs") / f"{name.replace('/', '-')}-seed{seed}-{stamp}"
    others = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain([first], others) if not path.exists())
