"""Relabeled trajectories beside the real environment: the same actions, asked for the same."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from amago.config import Config
from amago.envs.in_process import Env
from amago.envs.instructions import INSTRUCTION, PROGRESS, achieved_goals
from amago.envs.joint import joint_tasks
from amago.envs.registry import lane_env
from amago.envs.settings import EnvSettings
from amago.envs.spaces import ActionConverter
from amago.goals import GoalSpec
from amago.replay.codec import DamagedRecordError
from amago.replay.reader import TrajectoryReader
from amago.replay.relabel import Relabeler
from amago.stopping import Terminated
from amago.types import Trajectory

_ENVIRONMENT, _RULE = "the environment", "a slow version of the rule"
_SAMPLE = 8
"""Trajectories that are looked at, spread over the replay."""


_Goals = frozenset[tuple[float, ...]]


class _Row(NamedTuple):
    """What one step of a rollout was worth, and what it achieved."""

    reward: float
    terminal: bool
    progress: int
    achieved: _Goals


def audit(config: Config, store: TrajectoryReader) -> str:
    """How many rollouts agree with the environment, as stored and with hindsight goals.

    ValueError at the first that does not. An environment that plays the same actions differently
    each time cannot be asked; there, a slow version of the rule takes its place.
    """
    assert store.goals is not None
    settings = dict(_tasks(config.env))
    relabeler = Relabeler(
        replace(config.relabel, relabel="all", importance_sampling=False),
        None,
        repeats=store.goals.repeats,
    )
    counts = {_ENVIRONMENT: 0, _RULE: 0}
    for trajectory_id in _sample(*store.window):
        try:
            stored = store.read(trajectory_id)
        except DamagedRecordError:
            continue  # told by those who count them
        rng = np.random.default_rng(trajectory_id)
        versions = {"as stored": stored, "relabeled": relabeler(stored, rng)}
        task = settings.get(stored.task) or next(iter(settings.values()))
        with contextlib.closing(lane_env(task)) as env:
            first = _play(env, stored, store.goals)
            repeats = first is not None and first == _play(env, stored, store.goals)
            for what, version in versions.items():
                played = _play(env, version, store.goals) if repeats else None
                other = _RULE if played is None else _ENVIRONMENT
                expected = _reference(stored, version) if played is None else played
                _compare(f"trajectory {trajectory_id} {what}", version, expected, other)
                counts[other] += 1
    return ", ".join(
        f"{count} rollouts as {other} has them" for other, count in counts.items() if count
    )


def _tasks(env: EnvSettings) -> list[tuple[str, EnvSettings]]:
    return [(task.label, task.settings) for task in joint_tasks(env)] if env.ids else [("", env)]


def _sample(low: int, high: int) -> list[int]:
    return sorted({int(at) for at in np.linspace(low, high - 1, _SAMPLE)}) if high > low else []


def _play(env: Env, trajectory: Trajectory, goals: GoalSpec) -> list[_Row] | None:
    """A rollout's actions in its world, with its instruction; None where the environment fails."""
    actions = ActionConverter(env.action_space)
    executed = actions.executed(trajectory.prev_action[1:], trajectory.num_steps)
    asked, rows = np.asarray(trajectory.instruction), list[_Row]()
    try:
        env.reset(seed=trajectory.world_seed, options={INSTRUCTION: asked})
        for action in actions.to_envs(executed):
            _, reward, terminated, truncated, info = env.step(action)
            found = frozenset(map(tuple, achieved_goals(goals, info).tolist()))
            rows.append(_Row(float(reward), bool(terminated), int(info[PROGRESS]), found))
            if terminated or truncated:
                break
    except Terminated:
        raise
    except (Exception, SystemExit):
        return None
    return rows


def _reference(stored: Trajectory, version: Trajectory) -> list[_Row]:
    """The rule of docs/instructions.md, goal by goal and row by row, without `amago.goals`."""
    assert version.instruction is not None
    asked = [tuple(goal) for goal in version.instruction.tolist()]
    done, rows = 0, list[_Row]()
    for row in range(1, stored.num_steps + 1):
        found = _achieved(stored, row)
        hit = done < len(asked) and asked[done] in found
        done += hit
        complete = done == len(asked)
        rows.append(_Row(float(hit), bool(stored.terminal[row]) or complete, done, found))
        if complete:
            break
    return rows


def _achieved(trajectory: Trajectory, row: int) -> _Goals:
    assert trajectory.achieved is not None
    offsets, goals = trajectory.achieved
    return frozenset(map(tuple, goals[int(offsets[row]) : int(offsets[row + 1])].tolist()))


def _compare(what: str, found: Trajectory, expected: Sequence[_Row], other: str) -> None:
    """ValueError unless a trajectory is what the environment, or the slow rule, makes of it."""
    assert found.progress is not None
    if found.num_steps != len(expected):
        raise ValueError(
            f"{what}: it has {found.num_steps} steps, with {other} it has {len(expected)}"
        )
    for row, wanted in enumerate(expected, start=1):
        got = _Row(
            float(found.prev_reward[row]),
            bool(found.terminal[row]),
            int(found.progress[row]),
            _achieved(found, row),
        )
        for name, ours, theirs in zip(_Row._fields, got, wanted, strict=True):
            if ours != theirs:
                raise ValueError(
                    f"{what}: {name} is {ours} at step {row}, with {other} it is {theirs}"
                )
