"""One environment by its id or class: looked up, its arguments checked before it is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec as GymSpec
from gymnasium.envs.registration import load_env_creator

from amago.checks import did_you_mean
from amago.envs.catalogue import ENTRY_POINTS, TASKS, make_task
from amago.envs.extras import need
from amago.envs.in_process import Env, checked_env
from amago.envs.kinds import check_kinds, check_not_nan
from amago.envs.named import find_class, imported
from amago.envs.settings import EnvSettings

_TIME_LIMIT = "max_episode_steps"
"""An argument of gymnasium.make itself."""
_MINIGRID = ("MiniGrid-", "BabyAI-")
"""How the ids begin that importing minigrid registers."""


def maker(settings: EnvSettings) -> Callable[[], Env]:
    """gymnasium.make, with everything that can be checked beforehand checked."""
    kwargs = dict(settings.kwargs)
    cls = find_class(settings.id)
    if cls is not None:
        _check_arguments(settings.id, cls, kwargs, fixed={})
        return partial(_make_class, cls, kwargs)
    spec = _find_spec(settings.id)
    if settings.id in TASKS:
        make_task(settings.id, **{k: v for k, v in kwargs.items() if k != "render_mode"})
        kwargs.setdefault("render_mode", "rgb_array")
    elif spec.entry_point is not None:
        entry_point = spec.entry_point
        creator = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
        _check_arguments(settings.id, creator, kwargs, fixed=spec.kwargs)
        check_not_nan(settings.id, kwargs)
        if settings.id in ENTRY_POINTS:
            check_kinds(settings.id, creator, kwargs)
        metadata = getattr(creator, "metadata", None)
        # A wrapper class knows its metadata only once it has an environment.
        if isinstance(metadata, dict) and "rgb_array" in metadata.get("render_modes", ()):
            kwargs.setdefault("render_mode", "rgb_array")
    # The spec rather than the id: a worker need not know what this process has registered.
    return partial(_make, spec, kwargs)


def _make(spec: GymSpec, kwargs: dict[str, Any]) -> Env:
    """gymnasium.make; arguments that the environment does not like are a user's error."""
    try:
        return gym.make(spec, disable_env_checker=True, **kwargs)
    except (TypeError, LookupError, ArithmeticError) as error:
        if not kwargs:
            raise
        raise ValueError(
            f"{spec.id} cannot be made with the arguments {kwargs} "
            f"({type(error).__name__}: {error}); correct --env.kwargs"
        ) from error


def _make_class(cls: Callable[..., Any], kwargs: dict[str, Any]) -> Env:
    """An environment by its class; the time limit is not an argument of its own."""
    own = {name: value for name, value in kwargs.items() if name != _TIME_LIMIT}
    renders = "rgb_array" in (getattr(cls, "metadata", None) or {}).get("render_modes", ())
    if renders and "render_mode" in inspect.signature(cls).parameters:
        own.setdefault("render_mode", "rgb_array")
    env = checked_env(cls(**own))
    limit = kwargs.get(_TIME_LIMIT)
    return env if limit is None else gym.wrappers.TimeLimit(env, limit)


def _find_spec(env_id: str) -> GymSpec:
    module, _, name = env_id.rpartition(":")
    near = ""
    if module:
        near = _what_it_has(module, name, imported(module, f"--env.id {env_id!r}"))
    elif name.startswith(_MINIGRID) and name not in gym.registry:
        need("minigrid", "minigrid")
    try:
        return gym.spec(name)
    except gym.error.Error as error:
        raise ValueError(
            f"no environment is called {name!r}; {near or did_you_mean(name, gym.registry)}"
            "environments of other packages are written module:Name-v0, where importing the "
            "module registers the name, or module:Class"
        ) from error


def _what_it_has(module: str, name: str, space: ModuleType) -> str:
    """What else of a module may be meant."""
    near = did_you_mean(name, [key for key, value in vars(space).items() if callable(value)])
    envs = [
        key
        for key, value in vars(space).items()
        if isinstance(value, type) and issubclass(value, gym.Env) and value is not gym.Env
    ]
    has = f"{module} has {', '.join(envs)}" if envs else f"{module} has no environment"
    return near or f"{has}; "


def _check_arguments(
    env_id: str, creator: Callable[..., Any], kwargs: dict[str, Any], fixed: dict[str, Any]
) -> None:
    parameters = dict(inspect.signature(creator).parameters)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    if env_id in ENTRY_POINTS:
        parameters = {key: value for key, value in parameters.items() if key not in fixed}
    unknown = sorted(set(kwargs) - set(parameters) - {_TIME_LIMIT})
    if unknown:
        raise ValueError(
            f"{env_id} has no argument {', '.join(map(repr, unknown))}; "
            f"it accepts {', '.join([*parameters, _TIME_LIMIT])}"
        )
