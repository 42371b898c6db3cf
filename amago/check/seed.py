"""Whether one seed means one world: the same actions played twice must look the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from amago.check.observation import Finding, at_path
from amago.envs.in_process import Env
from amago.envs.leaves import walk
from amago.envs.spaces import ActionConverter
from amago.types import ACTION_MASK

_REPLAYED_STEPS = 200
"""Steps that are played twice, episode by episode, each with the seed after the last one's."""


def unseeded(env: Env, make_env: Callable[[], Env], seed: int) -> Finding | None:
    """What differs between two plays of a seed: in this environment, and in another one that
    was made alike."""
    first = _trace(env, seed)
    when = _difference(first, _trace(env, seed))
    if when is not None:
        return (
            f"two runs of seed {seed} and the next ones with the same actions differ {when}",
            "draw all randomness from self.np_random, which reset(seed=...) seeds (call "
            "super().reset(seed=seed) first), and reset every variable of the last episode",
        )
    other = make_env()
    if other.unwrapped is env.unwrapped:
        return None
    try:
        when = _difference(first, _trace(other, seed))
    finally:
        other.close()
    if when is None:
        return None
    return (
        f"two environments made alike, with the same actions and seed {seed}, differ {when}",
        "draw the world in reset(), from self.np_random, not in the constructor",
    )


def random_action(env: Env, obs: Any, rng: np.random.Generator) -> Any:
    """A uniformly random action that the mask of the observation allows."""
    space = env.action_space
    space.seed(int(rng.integers(2**31)))
    if not isinstance(obs, dict) or ACTION_MASK not in obs:
        return space.sample()
    mask = np.asarray(obs[ACTION_MASK]).astype(np.int8).reshape(-1)
    if mask.shape != (ActionConverter(space).spec.size,):
        return space.sample()
    if isinstance(space, gym.spaces.Discrete):
        return space.sample(mask if mask.any() else None)
    assert isinstance(space, gym.spaces.MultiDiscrete)
    parts = np.split(mask, np.cumsum(space.nvec.reshape(-1))[:-1])
    ids = [rng.choice(np.flatnonzero(part if part.any() else part + 1)) for part in parts]
    shaped = np.array(ids).reshape(space.nvec.shape) + space.start
    return shaped.astype(space.dtype)


def _difference(one: list[bytes], other: list[bytes]) -> str | None:
    for number in range(max(len(one), len(other))):
        if one[number : number + 1] != other[number : number + 1]:
            return "right after reset" if number == 0 else f"after step {number}"
    return None


def _trace(env: Env, seed: int) -> list[bytes]:
    rng = np.random.default_rng(seed)
    obs, _ = env.reset(seed=seed)
    found = [_bytes(env, obs)]
    for _ in range(_REPLAYED_STEPS):
        obs, reward, terminated, truncated, _ = env.step(random_action(env, obs, rng))
        ends = bytes([bool(terminated), bool(truncated)])
        found.append(_bytes(env, obs) + np.float64(reward).tobytes() + ends)
        if terminated or truncated:
            seed += 1
            obs, _ = env.reset(seed=seed)
            found[-1] += _bytes(env, obs)
    return found


def _bytes(env: Env, obs: Any) -> bytes:
    parts = []
    for path, _ in walk(env.observation_space, ()):
        part = at_path(obs, path)
        parts.append(part.encode() if isinstance(part, str) else np.asarray(part).tobytes())
    return b"".join(parts)
