"""Several tasks at once: the lanes are shared out among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from amago.config import literal
from amago.envs.joining import Joiner
from amago.envs.lanes import checked_episodes, furthest, read_only
from amago.envs.settings import EnvSettings
from amago.types import Array, Curriculum, EnvSpec, Step, Timestep, VectorEnv

_REWARD_SCALE = "reward_scale"
"""The argument of every task that multiplies its rewards."""


@dataclass(frozen=True)
class _JointTask:
    """One of the tasks that --env.ids lists."""

    label: str
    settings: EnvSettings
    reward_scale: float


def joint_tasks(settings: EnvSettings) -> list[_JointTask]:
    """The tasks of `ids`, each written id or id?name=value&name=value.

    `kwargs`, `trials` and `horizon` of the settings hold for all of them.
    """
    tasks = []
    for label in settings.ids:
        name, _, query = label.partition("?")
        kwargs = dict(settings.kwargs)
        for assignment in filter(None, query.split("&")):
            key, equals, value = assignment.partition("=")
            if not equals:
                raise ValueError(
                    f"--env.ids {label!r}: expected name=value after '?', got {assignment!r}"
                )
            kwargs[key] = literal(value)
        scale = kwargs.pop(_REWARD_SCALE, 1.0)
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not scale > 0:
            raise ValueError(
                f"--env.ids {label!r}: expected {_REWARD_SCALE} to be positive, got {scale}"
            )
        single = replace(settings, id=name, ids=(), kwargs=kwargs)
        tasks.append(_JointTask(label, single, float(scale)))
    if len(set(settings.ids)) < len(settings.ids):
        raise ValueError(f"--env.ids lists a task twice: {settings.ids}; give each once")
    return tasks


def share_out(num_tasks: int, num_lanes: int) -> list[range]:
    """The lanes of every task: neighbours, as evenly as can be."""
    if num_lanes < num_tasks:
        raise ValueError(
            f"expected at least one lane for each of {num_tasks} tasks, got {num_lanes} lanes; "
            "raise --env.num-lanes, --env.eval-lanes and --run.eval-episodes"
        )
    edges = [number * num_lanes // num_tasks for number in range(num_tasks + 1)]
    return [range(start, stop) for start, stop in pairwise(edges)]


class JointVector:
    """The lanes of several vectors, one after the other, as one."""

    def __init__(self, parts: Sequence[VectorEnv], scales: Sequence[float], spec: EnvSpec) -> None:
        """`spec` is what `common_spec` says of all tasks, of which these may be a few."""
        self._parts, self.spec = list(parts), spec
        self.num_lanes = sum(part.num_lanes for part in parts)
        self.tasks: tuple[str, ...] = sum((tuple(part.tasks) for part in parts), ())
        self.horizons: tuple[int | None, ...] = sum((tuple(part.horizons) for part in parts), ())
        self._starts = np.cumsum([0, *(part.num_lanes for part in parts)])
        self._joiner = Joiner(self._starts[:-1].tolist(), scales)

    @property
    def episodes(self) -> Array:
        """Rollouts begun per lane [N], read-only; assign a whole array to resume."""
        return read_only(np.concatenate([part.episodes for part in self._parts]))

    @episodes.setter
    def episodes(self, episodes: Array) -> None:
        checked = checked_episodes(episodes, self.num_lanes)
        for part, chunk in zip(self._parts, self._chunks(checked), strict=True):
            part.episodes = chunk

    @property
    def restarts(self) -> int:
        return sum(part.restarts for part in self._parts)

    @property
    def curriculum(self) -> Curriculum:
        return furthest([part.curriculum for part in self._parts])

    @curriculum.setter
    def curriculum(self, curriculum: Curriculum) -> None:
        for part in self._parts:
            part.curriculum = curriculum

    def reset(self) -> Timestep:
        return self._joiner.rows([part.reset() for part in self._parts])

    def step(self, action: Array, idle: Array | None = None) -> Step:
        idle = np.zeros(self.num_lanes, np.bool_) if idle is None else idle
        chunks = (self._chunks(values) for values in (np.asarray(action), idle))
        steps = [part.step(*chunk) for part, *chunk in zip(self._parts, *chunks, strict=True)]
        return self._joiner.step(steps)

    def render(self) -> Array:
        return self._parts[0].render()

    def close(self) -> None:
        for part in self._parts:
            part.close()

    def _chunks(self, values: Array) -> list[Array]:
        return np.split(values, self._starts[1:-1])


def common_spec(specs: Sequence[EnvSpec]) -> EnvSpec:
    """The spaces that all tasks share, with the longest horizon of any."""
    first = specs[0]
    for other in specs[1:]:
        if other.goals != first.goals:
            raise ValueError(
                f"tasks that are trained together need equal goals: {first.name} has "
                f"{first.goals}, {other.name} has {other.goals}; train them apart"
            )
        if (dict(other.obs), other.action) != (dict(first.obs), first.action):
            raise ValueError(
                f"tasks that are trained together need equal spaces: {first.name} has "
                f"{dict(first.obs)} and {first.action}, {other.name} has {dict(other.obs)} and "
                f"{other.action}; pad them with gymnasium.wrappers.TransformObservation and "
                "TransformAction, or train them apart"
            )
    horizons = [spec.horizon for spec in specs]
    known = [horizon for horizon in horizons if horizon is not None]
    longest = max(known) if len(known) == len(horizons) else None
    return replace(first, name=f"{len(specs)} tasks", horizon=longest)
