"""`amago.check_env`: whatever a user has of an environment, checked."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from amago.check.check_env import Check, check
from amago.envs.in_process import Env
from amago.envs.registry import MakeEnv, single_env
from amago.envs.settings import EnvSettings


def check_env(env: str | EnvSettings | MakeEnv | Env, steps: int = 1000, *, seed: int = 0) -> Check:
    """What amago sees of an environment, what training on it would cost, and every problem
    with its remedy; print it, or read `.problems`."""
    if isinstance(env, str):
        env = EnvSettings(id=env)
    if isinstance(env, EnvSettings):
        settings = env
        kwargs = "".join(f" --env.kwargs.{name} {value}" for name, value in env.kwargs.items())
        launch = f"amago train gym --env.id {env.id}{kwargs}"
        return check(lambda: single_env(settings), steps, seed, launch)
    if isinstance(env, gym.Env):
        kept = _KeptOpen(env)
        return check(lambda: kept, steps, seed)
    if not callable(env):
        raise ValueError(
            "expected the id of an environment, a gymnasium.Env or a function that makes one, got "
            f"{type(env).__name__}; of a vector environment, check a single lane"
        )
    return check(env, steps, seed)


class _KeptOpen(gym.Wrapper[Any, Any, Any, Any]):
    """A user's own environment, which is not ours to close."""

    def close(self) -> None: ...
