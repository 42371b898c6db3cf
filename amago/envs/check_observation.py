"""Whether an observation is what its space says, and if not, why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from amago.envs.in_process import Env
from amago.envs.leaves import walk

Finding = tuple[str, str]
"""What is wrong, and what to do about it."""
NOT_FINITE: Finding = (
    "has NaN or infinite values",
    "find the division or logarithm that makes them; clip its input",
)


def findings(env: Env, obs: Any) -> Iterator[Finding]:
    """Every array of an observation that is not in its space, or not finite."""
    for path, space in walk(env.observation_space, ()):
        name = "/".join(map(str, path)) or "observation"
        try:
            part = at_path(obs, path)
        except (KeyError, IndexError, TypeError):
            yield (
                f"observation {name!r} is missing",
                "return every entry that the space declares",
            )
            continue
        wrong = _wrong(part, space)
        if wrong is not None:
            yield f"observation {name!r} {wrong[0]}", wrong[1]


def at_path(obs: Any, path: tuple[Any, ...]) -> Any:
    """One array of a nested observation."""
    for key in path:
        obs = obs[key]
    return obs


def _wrong(part: Any, space: gym.Space[Any]) -> Finding | None:
    if not space.contains(part):
        return _why_outside(part, space)
    # An unbounded Box contains infinity.
    real = isinstance(space, gym.spaces.Box) and np.dtype(space.dtype).kind == "f"
    return NOT_FINITE if real and not np.isfinite(part).all() else None


def _why_outside(part: Any, space: gym.Space[Any]) -> Finding:
    array = np.asarray(part)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return NOT_FINITE
    if isinstance(space, gym.spaces.Box):
        if array.shape != space.shape:
            return (
                f"has shape {list(array.shape)}, its space says {list(space.shape)}",
                "correct the space, or reshape what is returned",
            )
        if not np.can_cast(array.dtype, np.dtype(space.dtype)):
            return (
                f"has dtype {array.dtype}, its space says {space.dtype}",
                f"return it with .astype(np.{space.dtype})",
            )
        if (array < space.low).any() or (array > space.high).any():
            return (
                f"reaches {array.min():g}..{array.max():g}, outside its space "
                f"{np.min(space.low):g}..{np.max(space.high):g}",
                "widen the bounds of the Box, or clip the values",
            )
    return f"is {part!r:.80}, not in {space}", "correct the space, or what is returned"
