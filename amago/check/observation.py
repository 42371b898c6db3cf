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
_NOT_FINITE: Finding = (
    "has NaN or infinite values",
    "find the division or logarithm that makes them; clip its input",
)
_TOO_LARGE: Finding = (
    "has values beyond float32, which networks compute in",
    "scale them down, or take their logarithm",
)


def findings(env: Env, obs: Any) -> Iterator[tuple[str, str, str]]:
    """Every array of an observation that is not in its space, or not finite: what is wrong,
    what to do about it, and what kind of problem it is, whatever the values."""
    if obs is None:
        yield "the observation is None", "return one that is in the space", "none"
        return
    for path, space in walk(env.observation_space, ()):
        name = "/".join(map(str, path)) or "observation"
        try:
            part = at_path(obs, path)
        except (KeyError, IndexError, TypeError):
            yield (
                f"observation {name!r} is missing",
                "return every entry that the space declares",
                f"{name} missing",
            )
            continue
        wrong = _wrong(part, space)
        if wrong is not None:
            what, remedy = wrong
            yield f"observation {name!r} {what}", remedy, f"{name}: {remedy}"


def at_path(obs: Any, path: tuple[Any, ...]) -> Any:
    """One array of a nested observation."""
    for key in path:
        obs = obs[key]
    return obs


def _wrong(part: Any, space: gym.Space[Any]) -> Finding | None:
    if not space.contains(part):
        return _why_outside(part, space)
    # An unbounded Box contains infinity.
    if isinstance(space, gym.spaces.Box) and np.dtype(space.dtype).kind == "f":
        if not np.isfinite(part).all():
            return _NOT_FINITE
        if np.abs(part).max(initial=0.0) > np.finfo(np.float32).max:
            return _TOO_LARGE
    return None


def _why_outside(part: Any, space: gym.Space[Any]) -> Finding:
    array = np.asarray(part)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return _NOT_FINITE
    if isinstance(space, gym.spaces.Box) and array.dtype.kind in "biuf":
        if array.shape != space.shape:
            return (
                f"has shape {list(array.shape)}, its space says {list(space.shape)}",
                "correct the space, or reshape what is returned",
            )
        if not np.can_cast(array.dtype, np.dtype(space.dtype)):
            unit = array.dtype.kind == "f" and space.dtype == np.uint8 and array.max() <= 1.0
            scaled = "(255 * it)" if unit else "it"
            return (
                f"has dtype {array.dtype}, its space says {space.dtype}",
                f"return {scaled} with .astype(np.{space.dtype})",
            )
        outside = (array < space.low) | (array > space.high)
        if outside.any():
            low, high = space.low[outside][0], space.high[outside][0]
            return (
                f"reaches {array[outside][0]:g}, outside its space {low:g}..{high:g}",
                "widen the bounds of the Box, or clip the values",
            )
    return f"is {part!r:.80}, not in {space}", "correct the space, or what is returned"
