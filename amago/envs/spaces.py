"""Gymnasium spaces as specs, and arrays on their way between environment and agent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from amago.types import ACTION_MASK, ActionSpec, Array, ObsSpec

BARE_KEY = "observation"
"""The key of an observation that is one array rather than a dictionary."""


@dataclass(frozen=True)
class _Leaf:
    """One array of a nested observation: where it lies, and its smallest value if a category."""

    path: tuple[Any, ...]
    spec: ObsSpec
    start: int = 0

    def find(self, obs: Any) -> Any:
        for key in self.path:
            obs = obs[key]
        return obs

    def convert(self, values: Array) -> Array:
        """A fresh array in the spec's dtype, since environments reuse their buffers."""
        if self.start:
            values = values.astype(np.int64) - self.start
        if self.spec.kind == "mask":
            return np.asarray(values != 0)
        return values.astype(self.spec.dtype)


class ObsConverter:
    """Turns observations of one space into the flat dictionaries of a Timestep."""

    def __init__(self, space: Space[Any]) -> None:
        self._leaves: dict[str, _Leaf] = {}
        for path, leaf_space in _walk(space, ()):
            key = "/".join(str(part) for part in path) or BARE_KEY
            if key in self._leaves:
                raise ValueError(
                    f"two arrays of the observation are both called {key!r} once nested keys are "
                    f"joined by '/'; rename one of them in {space}"
                )
            self._leaves[key] = _leaf(key, path, leaf_space)
        if not self._leaves:
            raise ValueError(
                f"expected an observation with at least one array, got the empty space {space}; "
                "give the environment a constant observation"
            )
        self.specs: dict[str, ObsSpec] = {key: leaf.spec for key, leaf in self._leaves.items()}

    def batch(self, obs: Any) -> dict[str, Array]:
        """Convert an observation whose arrays already have a leading [N]."""
        return {key: leaf.convert(np.asarray(leaf.find(obs))) for key, leaf in self._leaves.items()}

    def stack(self, observations: Sequence[Any]) -> dict[str, Array]:
        """Convert N single observations into arrays [N, ...]."""
        return {
            key: leaf.convert(np.stack([np.asarray(leaf.find(obs)) for obs in observations]))
            for key, leaf in self._leaves.items()
        }


def _walk(space: Space[Any], path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Space[Any]]]:
    if isinstance(space, spaces.Dict):
        for name, inner in space.spaces.items():
            yield from _walk(inner, (*path, name))
    elif isinstance(space, spaces.Tuple):
        for index, inner in enumerate(space.spaces):
            yield from _walk(inner, (*path, index))
    else:
        yield path, space


def _leaf(key: str, path: tuple[Any, ...], space: Space[Any]) -> _Leaf:
    if isinstance(space, spaces.MultiBinary | spaces.Box) and (
        key == ACTION_MASK or isinstance(space, spaces.MultiBinary) or space.dtype == np.bool_
    ):
        return _Leaf(path, ObsSpec(tuple(space.shape), "bool", "mask"))
    if isinstance(space, spaces.Box):
        dtype = "float32" if space.dtype == np.float64 else str(space.dtype)
        return _Leaf(path, ObsSpec(space.shape, dtype, "real"))
    if isinstance(space, spaces.Discrete) and key != ACTION_MASK:
        size = int(space.n)
        spec = ObsSpec((), str(np.min_scalar_type(size - 1)), "category", size)
        return _Leaf(path, spec, int(space.start))
    if isinstance(space, spaces.MultiDiscrete) and _is_grid_of_ids(space):
        size = int(space.nvec.flat[0])
        spec = ObsSpec(space.shape, str(np.min_scalar_type(size - 1)), "category", size)
        return _Leaf(path, spec, int(space.start.flat[0]))
    raise ValueError(
        f"observation {key!r}: expected Box, Discrete or MultiBinary, or a Dict or Tuple of these "
        f"(for {ACTION_MASK!r}: MultiBinary or Box), got {space}; wrap the environment with "
        "gymnasium.wrappers.FlattenObservation or TransformObservation"
    )


def _is_grid_of_ids(space: spaces.MultiDiscrete) -> bool:
    """Whether all entries count from the same start to the same end."""
    return bool(
        (space.nvec == space.nvec.flat[0]).all() and (space.start == space.start.flat[0]).all()
    )


class ActionConverter:
    """Turns agent actions (ids, or vectors in [-1, 1]) into actions of one space."""

    def __init__(self, space: Space[Any]) -> None:
        self.space = space
        if isinstance(space, spaces.Discrete):
            self.spec = ActionSpec("discrete", int(space.n))
            self._start = int(space.start)
        elif isinstance(space, spaces.Box):
            self.spec = ActionSpec("continuous", int(np.prod(space.shape)))
            low, high = (np.asarray(edge, np.float64) for edge in (space.low, space.high))
            if not (np.isfinite(low).all() and np.isfinite(high).all() and self.spec.size):
                raise ValueError(
                    f"expected a Box action space of at least one number, each with finite bounds, "
                    f"got {space}; bound it with gymnasium.wrappers.RescaleAction or ClipAction"
                )
            self._low, self._high = low, high
        else:
            raise ValueError(
                f"expected a Discrete or a bounded Box action space, got {space}; turn it into "
                "one of the two with gymnasium.wrappers.TransformAction"
            )

    def executed(self, action: Array, num_lanes: int) -> Array:
        """The action that will really be taken: checked ids [N], or vectors [N, A] clipped."""
        action = np.asarray(action)
        shape = (num_lanes,) if self.spec.kind == "discrete" else (num_lanes, self.spec.size)
        if action.shape != shape:
            raise ValueError(
                f"expected {self.spec.kind} actions of shape {list(shape)} for {num_lanes} lanes, "
                f"got {list(action.shape)}"
            )
        if self.spec.kind == "continuous":
            return np.clip(action, -1.0, 1.0).astype(np.float32)
        if action.dtype.kind not in "iu" or action.min() < 0 or action.max() >= self.spec.size:
            raise ValueError(f"expected action ids in 0..{self.spec.size - 1}, got {action}")
        return action.astype(np.int64)

    def to_env(self, action: Array) -> Array:
        """Executed agent actions as actions of the space, [N, ...]."""
        if self.spec.kind == "discrete":
            return (action + self._start).astype(self.space.dtype)
        unit = (action.reshape(len(action), *self._low.shape).astype(np.float64) + 1.0) / 2.0
        values = np.clip(self._low + unit * (self._high - self._low), self._low, self._high)
        dtype = np.dtype(self.space.dtype)
        return (np.rint(values) if dtype.kind in "iu" else values).astype(dtype)

    def to_envs(self, action: Array) -> list[Any]:
        """Executed agent actions as one action of the space per lane."""
        batch = self.to_env(action)
        # The ellipsis keeps a Box of shape () an array, which Box.contains insists on.
        rows = range(len(batch))
        return list(batch) if self.spec.kind == "discrete" else [batch[row, ...] for row in rows]


def check_action_mask(obs: dict[str, ObsSpec], action: ActionSpec) -> None:
    """Refuse a mask that cannot mean anything for the action space."""
    if ACTION_MASK not in obs:
        return
    if action.kind != "discrete":
        raise ValueError(
            f"an {ACTION_MASK!r} needs a Discrete action space, got a Box; rename the observation"
        )
    if obs[ACTION_MASK].shape != (action.size,):
        raise ValueError(
            f"expected an {ACTION_MASK!r} of shape [{action.size}], one flag per action, "
            f"got {list(obs[ACTION_MASK].shape)}"
        )
