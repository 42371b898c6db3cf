"""From settings to lanes; importing this module registers amago's environments."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec as GymSpec
from gymnasium.envs.registration import load_env_creator

from amago.checks import did_you_mean
from amago.envs.catalogue import ENTRY_POINTS, TASKS, full_id, make_task
from amago.envs.extras import need
from amago.envs.foreign import what_it_is
from amago.envs.in_process import Env, InProcessVector, checked_env
from amago.envs.instructions import Ask, with_instructions
from amago.envs.joint import JointVector, common_spec, joint_tasks, share_out
from amago.envs.kinds import check_kinds, check_not_nan
from amago.envs.named import find_class, imported, wrapped
from amago.envs.native import NativeVector
from amago.envs.settings import EnvSettings
from amago.envs.tasks.base import Task
from amago.envs.trials import Trials
from amago.envs.vector_maker import VectorMaker
from amago.envs.worker_process import Factory
from amago.envs.workers import WorkerVector
from amago.types import EnvSpec, VectorEnv

MakeEnv = Callable[[], Env]
_TIME_LIMIT = "max_episode_steps"
"""An argument of gymnasium.make itself."""
_MINIGRID = ("MiniGrid-", "BabyAI-")
"""How the ids begin that importing minigrid registers."""


def register() -> None:
    """Make the environments of all domains known to Gymnasium."""
    native = {name: ("amago.envs.task_env:TaskEnv", {"task_id": name}) for name in TASKS}
    for name, (entry_point, kwargs) in (native | ENTRY_POINTS).items():
        if name not in gym.registry:
            gym.register(name, entry_point, kwargs=dict(kwargs), order_enforce=name in TASKS)


def make_vector(
    settings: EnvSettings,
    *,
    seed: int,
    num_lanes: int,
    make_env: MakeEnv | None = None,
    lanes: range | None = None,
) -> VectorEnv:
    """N lanes of the environment that the settings, or `make_env` in place of an id, describe.

    amago's own tasks run natively batched, unless `trials`, `horizon` or `instruction` ask for
    a wrapper around them; `num_workers` spreads the lanes of either kind over processes. `lanes`
    makes some neighbours of the N only, with the worlds that they have among all.
    """
    if num_lanes < 1:
        raise ValueError(f"expected at least 1 lane, got {num_lanes}")
    if isinstance(make_env, VectorMaker):
        return make_env.lanes(settings, seed)
    lanes = range(num_lanes) if lanes is None else lanes
    if settings.ids and make_env is None:
        factory = _joint_factory(settings, seed, num_lanes)
    else:
        factory = _lane_factory(_with_full_id(settings), seed, make_env)
    if settings.num_workers:
        return WorkerVector(
            partial(_from_lane, factory, lanes.start),
            len(lanes),
            settings.num_workers,
            timeout=settings.timeout_seconds,
        )
    return factory(lanes.start, len(lanes))


def _from_lane(factory: Factory, start: int, first_lane: int, num_lanes: int) -> VectorEnv:
    return factory(start + first_lane, num_lanes)


def first_task(settings: EnvSettings) -> EnvSettings:
    """The settings themselves, or those of the first of several tasks."""
    return joint_tasks(settings)[0].settings if settings.ids else settings


def native_task(settings: EnvSettings) -> Task | None:
    """The natively batched task that the lanes of those settings play; None where there is none."""
    settings = _with_full_id(settings)
    kwargs = None if settings.ids else _native_kwargs(settings)
    return None if kwargs is None else make_task(settings.id, **kwargs)


def single_env(settings: EnvSettings, make_env: MakeEnv | None = None) -> Env:
    """One plain Gymnasium environment of those settings, without the Trials wrapper."""
    if isinstance(make_env, VectorMaker):
        return make_env.one_lane()
    if make_env is None:
        settings = first_task(settings)
    else:
        _check_maker(make_env)
    env = checked_env((make_env or _maker(_with_full_id(settings)))())
    return checked_env(wrapped(env, settings.wrappers))


def _with_full_id(settings: EnvSettings) -> EnvSettings:
    return replace(settings, id=full_id(settings.id))


def _lane_factory(
    settings: EnvSettings, seed: int, make_env: MakeEnv | None, name: str | None = None
) -> Factory:
    """`name` labels the lanes, in place of the id."""
    if make_env is not None:
        _check_maker(make_env)
        return partial(_env_lanes, make_env, settings, None, seed)
    kwargs = _native_kwargs(settings)
    if kwargs is not None:
        make_task(settings.id, **kwargs)  # so that a bad argument fails here, not in a worker
        return partial(_native_lanes, settings.id, kwargs, name or settings.id, seed)
    return partial(_env_lanes, _maker(settings), settings, name or settings.id, seed)


def _check_maker(make_env: Any) -> None:
    if callable(make_env) and not isinstance(make_env, gym.Env):
        return
    what, remedy = what_it_is(make_env)
    if isinstance(make_env, gym.Env):
        what, remedy = "an environment", "wrap it, as in env=lambda: MyEnv()"
    raise ValueError(
        f"expected env to be a class or a function that makes a gymnasium.Env, got {what}; {remedy}"
    )


def _joint_factory(settings: EnvSettings, seed: int, total: int) -> Factory:
    tasks = joint_tasks(settings)
    factories = [
        _lane_factory(_with_full_id(task.settings), seed, None, task.label) for task in tasks
    ]
    blocks = share_out(len(tasks), total)
    specs = []
    for factory in factories:  # a worker sees some tasks only, so their spec is made here
        with contextlib.closing(factory(0, 1)) as probe:
            specs.append(probe.spec)
    scales = [task.reward_scale for task in tasks]
    spec = common_spec(specs)
    if spec.goals is not None and set(scales) != {1.0}:
        raise ValueError(
            "--env.ids: goals are worth 1 each, before relabeling and after it, so tasks with "
            f"instructions take no reward_scale; got {scales}"
        )
    return partial(_joint_lanes, factories, scales, blocks, spec)


def _joint_lanes(
    factories: list[Factory],
    scales: list[float],
    blocks: list[range],
    spec: EnvSpec,
    first_lane: int,
    num_lanes: int,
) -> VectorEnv:
    wanted = range(first_lane, first_lane + num_lanes)
    parts, part_scales = [], []
    for factory, scale, block in zip(factories, scales, blocks, strict=True):
        lanes = range(max(block.start, wanted.start), min(block.stop, wanted.stop))
        if lanes:
            parts.append(factory(lanes.start, len(lanes)))
            part_scales.append(scale)
    return JointVector(parts, part_scales, spec)


def _native_kwargs(settings: EnvSettings) -> dict[str, Any] | None:
    """The arguments of the native task that does all that is asked, if there is one."""
    if settings.id not in TASKS or settings.trials is not None or settings.instruction:
        return None
    if settings.wrappers:
        return None
    if settings.horizon is None:
        return dict(settings.kwargs)
    if TASKS[settings.id][0].horizon_ends_rollout and settings.horizon_is_terminal:
        return {**settings.kwargs, "horizon": settings.horizon}
    return None


def _native_lanes(
    task_id: str, kwargs: dict[str, Any], name: str, seed: int, first_lane: int, num_lanes: int
) -> VectorEnv:
    task = make_task(task_id, **kwargs)
    return NativeVector(task, num_lanes, seed, first_lane=first_lane, name=name)


def lane_env(settings: EnvSettings) -> Env:
    """The environment of one lane, wrapped as it is played."""
    settings = _with_full_id(settings)
    return with_instructions(_wrapped(checked_env(_maker(settings)()), settings))


def _wrapped(env: Env, settings: EnvSettings) -> Env:
    env = checked_env(wrapped(env, settings.wrappers))
    if settings.trials is not None or settings.horizon is not None:
        env = Trials(env, settings.trials, settings.horizon, settings.horizon_is_terminal)
    return Ask(with_instructions(env), settings.instruction) if settings.instruction else env


def _env_lanes(
    make: MakeEnv,
    settings: EnvSettings,
    name: str | None,
    seed: int,
    first_lane: int,
    num_lanes: int,
) -> VectorEnv:
    def make_env() -> Env:
        return _wrapped(checked_env(make()), settings)

    described = settings if name is not None else replace(settings, id="")
    return InProcessVector(
        make_env, num_lanes, seed, first_lane=first_lane, name=name, settings=described
    )


def _maker(settings: EnvSettings) -> MakeEnv:
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


def named_env(text: str, stored: EnvSettings) -> MakeEnv:
    """What makes the environment that a user names again, for a run that was made elsewhere."""
    kwargs = stored.kwargs if text == stored.id else {}
    return _maker(_with_full_id(replace(stored, id=text, ids=(), kwargs=kwargs)))


def _find_spec(env_id: str) -> GymSpec:
    module, _, name = env_id.rpartition(":")
    near = ""
    if module:
        space = imported(module, f"--env.id {env_id!r}")
        near = did_you_mean(name, [key for key, value in vars(space).items() if callable(value)])
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


register()
