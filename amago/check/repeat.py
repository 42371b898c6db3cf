"""Playing the rollout of an environment's error again."""

from __future__ import annotations

import contextlib
import traceback
from pathlib import Path

import numpy as np

from amago.envs.registry import lane_env
from amago.envs.settings import EnvSettings
from amago.saved.files import read_json
from amago.saved.trust import check_env
from amago.stopping import Terminated


def repeat(path: Path, *, trust: bool = False) -> str | None:
    """The traceback of an error that happens again; None if it does not.

    `trust` vouches for the modules that the file names.
    """
    try:
        record = read_json(path)
        settings = EnvSettings(**{**record["env"], "ids": (), "on_error": "raise"})
        seed, actions = int(record["world_seed"]), list(record["actions"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not the file of an environment's error: {error}") from error
    check_env(path, settings, trust=trust)
    with contextlib.closing(lane_env(settings)) as env:
        try:
            env.reset(seed=seed)
            for action in actions:
                env.step(np.asarray(action, env.action_space.dtype))
        except Terminated:
            raise
        except (Exception, SystemExit):
            return traceback.format_exc()
    return None
