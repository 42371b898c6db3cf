"""Trajectories whose every row says where it came from."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from amago.types import ActionSpec, Batch, EnvSpec, ObsSpec, Trajectory

COUNTING_SPEC = EnvSpec(
    name="counting",
    obs={"count": ObsSpec((3,), "float32")},
    action=ActionSpec("discrete", 4),
    horizon=None,
)


def counting_trajectory(lane: int, episode: int, num_steps: int) -> Trajectory:
    """obs[t] = (lane, episode, t), action[t] = t mod 4, reward[t] = t + 1, terminal at the end."""
    step = np.arange(num_steps + 1)
    count = np.stack([np.full_like(step, lane), np.full_like(step, episode), step], axis=1)
    prev_action = np.zeros(num_steps + 1, np.uint8)
    prev_action[1:] = step[:-1] % 4
    return Trajectory(
        obs={"count": count.astype(np.float32)},
        prev_action=prev_action,
        prev_reward=step.astype(np.float32),
        first=step == 0,
        terminal=step == num_steps,
        world_seed=1000 * lane + episode,
        task=f"lane {lane}",
    )


def sequences(batch: Batch) -> list[Batch]:
    """Each sequence of a batch alone."""
    found, begin = [], 0
    for number, length in enumerate(batch.lengths):
        rows, begin = slice(begin, begin + length), begin + length

        def cut(name: str, value: Any, rows: slice = rows, number: int = number) -> Any:
            if name == "lengths":
                return (value[number],)
            if value is None or name in ("instruction", "num_goals"):
                return None if value is None else value[number : number + 1]
            if isinstance(value, dict):
                return {key: item[rows] for key, item in value.items()}
            return value[rows]

        found.append(Batch(**{name: cut(name, value) for name, value in vars(batch).items()}))
    return found


def same(a: Any, b: Any) -> bool:
    """Whether two values, possibly of nested records, agree in every bit and dtype."""
    if dataclasses.is_dataclass(a):
        return type(a) is type(b) and same(vars(a), vars(b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if a is None or isinstance(a, int | str):
        return type(a) is type(b) and bool(a == b)
    x, y = np.asarray(a), np.asarray(b)
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def test_same_notices_one_changed_bit_dtype_or_missing_field() -> None:
    trajectory = counting_trajectory(lane=1, episode=2, num_steps=3)
    assert same(trajectory, counting_trajectory(1, 2, 3))
    for changed in (
        {"world_seed": 0},
        {"prev_reward": trajectory.prev_reward.astype(np.float64)},
        {"first": ~trajectory.first},
        {"progress": np.zeros(4, np.int64)},
        {"obs": {}},
    ):
        assert not same(trajectory, dataclasses.replace(trajectory, **changed))
