"""Gymnasium spaces as specs, and arrays on their way between environment and agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from amago.envs.leaves import Leaf, leaf_of, walk
from amago.types import ACTION_MASK, BARE_KEY, ActionSpec, Array, ObsSpec


class ObsConverter:
    """Turns observations of one space into the flat dictionaries of a Timestep."""

    def __init__(self, space: Space[Any]) -> None:
        self.leaves: dict[str, Leaf] = {}
        self.spaces: dict[str, Space[Any]] = {}
        for path, leaf_space in walk(space, ()):
            key = "/".join(str(part) for part in path) or BARE_KEY
            if key in self.leaves:
                raise ValueError(
                    f"two arrays of the observation are both called {key!r} once nested keys are "
                    f"joined by '/'; rename one of them in {space}"
                )
            self.leaves[key] = leaf_of(key, path, leaf_space)
            self.spaces[key] = leaf_space
        if not self.leaves:
            raise ValueError(
                f"expected an observation with at least one array, got the empty space {space}; "
                "give the environment a constant observation"
            )
        self.specs: dict[str, ObsSpec] = {key: leaf.spec for key, leaf in self.leaves.items()}

    @property
    def is_bare(self) -> bool:
        """Whether the observation is one array, rather than a Dict or Tuple of them."""
        return BARE_KEY in self.leaves

    def batch(self, obs: Any) -> dict[str, Array]:
        """Convert an observation whose arrays already have a leading [N]."""
        return {key: leaf.batch(leaf.find(obs)) for key, leaf in self.leaves.items()}

    def flat_batch(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Convert arrays [N, ...] that are already called what the specs call them."""
        return {key: leaf.batch(arrays[key]) for key, leaf in self.leaves.items()}

    def stack(self, observations: Sequence[Any]) -> dict[str, Array]:
        """Convert N single observations into arrays [N, ...]."""
        return {
            key: leaf.stack([leaf.find(obs) for obs in observations])
            for key, leaf in self.leaves.items()
        }


class ActionConverter:
    """Turns agent actions (amago.types.ActionSpec) into actions of one space."""

    def __init__(self, space: Space[Any]) -> None:
        self.space = space
        self.spec = _action_spec(space)
        if isinstance(space, spaces.Box):
            self._low, self._high = (
                np.asarray(edge, np.float64) for edge in (space.low, space.high)
            )
        # Smallest id, one per dimension where there are several.
        self._start: Any = getattr(space, "start", np.zeros(space.shape or (), np.int64))

    def executed(self, action: Array, num_lanes: int) -> Array:
        """The action that will really be taken: checked ids and bits, clipped vectors."""
        action = np.asarray(action)
        kind, shape = self.spec.kind, (num_lanes, *self.spec.shape)
        if action.shape != shape:
            raise ValueError(
                f"expected {kind} actions of shape {list(shape)} for {num_lanes} lanes, "
                f"got {list(action.shape)}"
            )
        if kind == "continuous":
            return np.clip(action, -1.0, 1.0).astype(np.float32)
        limit: Any = {"discrete": self.spec.size, "multi_binary": 2}.get(kind, self.spec.sizes)
        if action.dtype.kind not in "iub" or (action < 0).any() or (action >= limit).any():
            upto = (np.asarray(limit) - 1).tolist()
            raise ValueError(f"expected action ids in 0..{upto}, got {action}")
        return action.astype(np.int64)

    def to_env(self, action: Array) -> Array:
        """Executed agent actions as actions of the space, [N, ...]."""
        dtype = np.dtype(self.space.dtype)
        if self.spec.kind != "continuous":
            shape = self.space.shape or ()
            return np.asarray(action.reshape(len(action), *shape) + self._start, dtype)
        unit = (action.reshape(len(action), *self._low.shape).astype(np.float64) + 1.0) / 2.0
        # Both ends weighted, because their difference may overflow.
        values = np.clip(self._low * (1.0 - unit) + self._high * unit, self._low, self._high)
        if dtype.kind not in "iub":
            return values.astype(dtype)
        assert isinstance(self.space, spaces.Box)
        inner = (values > self._low) & (values < self._high)
        # The ends themselves may not be exact in float64.
        ends = np.where(values >= self._high, self.space.high, self.space.low)
        return np.where(inner, np.rint(np.where(inner, values, 0)).astype(dtype), ends)

    def to_envs(self, action: Array) -> list[Any]:
        """Executed agent actions as one action of the space per lane."""
        batch = self.to_env(action)
        # The ellipsis keeps a Box of shape () an array, which Box.contains insists on.
        rows = range(len(batch))
        return list(batch) if self.spec.kind == "discrete" else [batch[row, ...] for row in rows]

    def from_env(self, action: Any) -> Array:
        """Actions of the space [N, ...], each within it, as agent actions: for recorded data."""
        values = np.asarray(action)
        rows = values.reshape(len(values), *self.spec.shape)
        if self.spec.kind != "continuous":
            ids = rows.astype(np.int64) - np.reshape(self._start, self.spec.shape or ())
            return self.executed(ids, len(rows))
        low, high = self._low.reshape(-1), self._high.reshape(-1)
        width = np.where(high > low, high / 2 - low / 2, 1.0)
        return self.executed((rows.astype(np.float64) / 2 - low / 2) / width * 2 - 1.0, len(rows))


def _action_spec(space: Space[Any]) -> ActionSpec:
    if isinstance(space, spaces.Discrete):
        return ActionSpec("discrete", int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        sizes = tuple(int(n) for n in space.nvec.reshape(-1))
        return ActionSpec("multi_discrete", sum(sizes), sizes)
    if isinstance(space, spaces.MultiBinary):
        return ActionSpec("multi_binary", int(np.prod(space.shape)))
    if isinstance(space, spaces.Box):
        finite = np.isfinite(space.low).all() and np.isfinite(space.high).all()
        if finite and space.low.size:
            return ActionSpec("continuous", int(np.prod(space.shape)))
        raise ValueError(
            f"expected a Box action space of at least one number, each with finite bounds, "
            f"got {space}; bound it with gymnasium.wrappers.TransformAction(env, lambda a: a, "
            "gymnasium.spaces.Box(low, high, shape))"
        )
    raise ValueError(
        "expected a Discrete, MultiDiscrete, MultiBinary or bounded Box action space, got "
        f"{space}; {_alternative(space)} with gymnasium.wrappers.TransformAction"
    )


def _alternative(space: Space[Any]) -> str:
    """The nearest action space that works."""
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return "turn it into one of these"
    parts = [part for _, part in walk(space, ())]
    if parts and all(isinstance(part, spaces.Discrete) for part in parts):
        sizes = [int(part.n) for part in parts if isinstance(part, spaces.Discrete)]
        return f"offer MultiDiscrete({sizes}) instead, which holds the same choices,"
    if parts and all(isinstance(part, spaces.Box) for part in parts):
        count = sum(int(np.prod(part.shape or ())) for part in parts)
        return f"offer one Box of {count} numbers instead"
    if not any(isinstance(part, spaces.Box) for part in parts):
        return "offer one MultiDiscrete with a dimension per choice instead,"
    return (
        "discrete and continuous parts do not mix: offer one MultiDiscrete, with the continuous "
        "parts cut into steps,"
    )


def check_action_mask(obs: dict[str, ObsSpec], action: ActionSpec) -> None:
    """Refuse a mask that cannot mean anything for the action space."""
    nested = [key for key in obs if key.startswith(f"{ACTION_MASK}/")]
    if nested:
        raise ValueError(
            f"expected {ACTION_MASK!r} to be one array of flags, got {', '.join(nested)}; "
            "concatenate the flags of all dimensions"
        )
    deeper = [key for key in obs if key.endswith(f"/{ACTION_MASK}")]
    if deeper:
        raise ValueError(
            f"expected {ACTION_MASK!r} as an entry of the outermost Dict, got {', '.join(deeper)}; "
            "move it there, or rename it if it is no mask"
        )
    if ACTION_MASK not in obs:
        return
    if action.kind == "continuous":
        raise ValueError(
            f"an {ACTION_MASK!r} needs a Discrete or MultiDiscrete action space, got a Box; "
            "rename the observation"
        )
    if action.kind == "multi_binary":
        raise ValueError(
            f"an {ACTION_MASK!r} needs a Discrete or MultiDiscrete action space, got MultiBinary; "
            f"offer MultiDiscrete([2] * {action.size}) with two flags per bit, for 0 and for 1"
        )
    if obs[ACTION_MASK].shape != (action.size,):
        raise ValueError(
            f"expected an {ACTION_MASK!r} of shape [{action.size}], one flag per action"
            f"{' of every dimension' if action.sizes else ''}, "
            f"got {list(obs[ACTION_MASK].shape)}; give the mask that shape, or rename it"
        )
