"""Classes by the name module:Class: environments and the wrappers around them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import gymnasium as gym

from amago.checks import did_you_mean
from amago.config import literal


def imported(module: str, flag: str) -> ModuleType:
    """A module that the user named with a flag."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{flag} needs the module {error.name!r}, which cannot be imported; install it, or "
            "correct the part before the colon"
        ) from error


def find_class(env_id: str) -> Callable[..., Any] | None:
    """The class that `module:Class` names; None if the id is one of Gymnasium's registry."""
    module, _, name = env_id.rpartition(":")
    if not module:
        return None
    found = getattr(imported(module, f"--env.id {env_id!r}"), name, None)
    return found if callable(found) and name not in gym.registry else None


def wrapped(env: gym.Env[Any, Any], wrappers: Iterable[str]) -> gym.Env[Any, Any]:
    """The environment inside wrappers that are written `module:Wrapper?name=value`; the first
    is the innermost."""
    for text in wrappers:
        path, _, query = text.partition("?")
        module, _, name = path.rpartition(":")
        if not module:
            raise ValueError(
                f"--env.wrappers takes module:Wrapper, such as "
                f"gymnasium.wrappers:ClipReward?min_reward=-1&max_reward=1, got {text!r}"
            )
        space = imported(module, f"--env.wrappers {text!r}")
        wrapper = getattr(space, name, None)
        if not callable(wrapper):
            raise ValueError(
                f"--env.wrappers {text!r}: {module} has no {name!r}; "
                f"{did_you_mean(name, dir(space))}expected a class that wraps an environment"
            )
        arguments = dict(part.partition("=")[::2] for part in query.split("&") if part)
        try:
            env = wrapper(env, **{key: literal(value) for key, value in arguments.items()})
        except TypeError as error:
            parameters = list(inspect.signature(wrapper).parameters)[1:]
            takes = f"takes {', '.join(parameters)}" if parameters else "takes no arguments"
            raise ValueError(f"--env.wrappers {text!r}: {error}; {name} {takes}") from error
    return env
