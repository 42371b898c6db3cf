"""From settings to lanes; importing this module registers amago's environments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium as gym

from amago.envs.catalogue import ENTRY_POINTS, TASKS, full_id, make_task
from amago.envs.foreign import what_it_is
from amago.envs.in_process import Env, InProcessVector, checked_env
from amago.envs.instructions import Ask, with_instructions
from amago.envs.joint import JointVector, common_spec, joint_tasks, share_out
from amago.envs.making import maker
from amago.envs.named import wrapped
from amago.envs.native import NativeVector
from amago.envs.settings import EnvSettings
from amago.envs.tasks.base import Task
from amago.envs.trials import Trials
from amago.envs.vector_maker import VectorMaker
from amago.envs.worker_process import Factory
from amago.envs.workers import WorkerVector
from amago.types import EnvSpec, VectorEnv

MakeEnv = Callable[[], Env]


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


def env_spec(settings: EnvSettings, make_env: MakeEnv | None = None) -> EnvSpec:
    """What an agent has to know of an environment: makes a lane of each task and closes it."""
    settings = replace(settings, num_workers=0)
    num_lanes = max(1, len(settings.ids))
    with contextlib.closing(
        make_vector(settings, seed=0, num_lanes=num_lanes, make_env=make_env)
    ) as lanes:
        return lanes.spec


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
        _x(make_env)
    env = checked_env((make_env or maker(_with_full_id(settings)))())
    return checked_env(wrapped(env, settings.wrappers))


def _with_full_id(settings: EnvSettings) -> EnvSettings:
    return replace(settings, id=full_id(settings.id))


def _lane_factory(
    settings: EnvSettings, seed: int, make_env: MakeEnv | None, name: str | None = None
) -> Factory:
    """`name` labels the lanes, in place of the id."""
    if make_env is not None:
        _x(make_env)
        return partial(_env_lanes, make_env, settings, None, seed)
    kwargs = _native_kwargs(settings)
    if kwargs is not None:
        make_task(settings.id, **kwargs)  # so that a bad argument fails here, not in a worker
        return partial(_native_lanes, settings.id, kwargs, name or settings.id, seed)
    return partial(_env_lanes, maker(settings), settings, name or settings.id, seed)


def _x(make_env: Any) -> None:
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
    return with_instructions(_wrapped(checked_env(maker(settings)()), settings))


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


def named_env(text: str, stored: EnvSettings) -> MakeEnv:
    """What makes the environment that a user names again, for a run that was made elsewhere."""
    kwargs = stored.kwargs if text == stored.id else {}
    return maker(_with_full_id(replace(stored, id=text, ids=(), kwargs=kwargs)))


register()
