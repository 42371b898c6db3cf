"""POPGym, 48 environments that need memory [Morad et al. 2023, arXiv:2303.01859]."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from itertools import product
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from amago.envs.extras import need

_popgym_envs = need("popgym.envs", "popgym")
_LABYRINTHS = tuple(_popgym_envs.NAVIGATION)


class PopGym(gym.Env[Any, Any]):
    """One POPGym environment by its short name, such as RepeatPreviousEasy.

    The time limit is part of the task: it is known as `horizon`, and meeting it terminates. An
    action of several parts becomes one id, the last part counting fastest.
    """

    def __init__(self, name: str) -> None:
        cls = getattr(_popgym_envs, name, None)
        if cls is None:
            raise ValueError(
                f"the installed popgym has no environment {name!r}; upgrade it: "
                "pip install 'amago[popgym]'"
            )
        self.env = cls()
        self.horizon = _horizon(self.env)
        self.observation_space: spaces.Space[Any] = self.env.observation_space
        self.action_space: spaces.Space[Any] = self.env.action_space
        self._parts: list[tuple[int, ...]] | None = None
        if isinstance(self.env.action_space, spaces.MultiDiscrete):
            self._parts = list(product(*map(range, self.env.action_space.nvec.tolist())))
            self.action_space = spaces.Discrete(len(self._parts))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if not isinstance(self.env, _LABYRINTHS):
            obs, info = self.env.reset(seed=seed, options=options)
            self.np_random = self.env.np_random  # one generator for both, seeded once
            return obs, _copied(info)
        super().reset(seed=seed)
        with _kept_global_randomness():
            world = int(self.np_random.integers(2**32)) if seed is None else seed
            obs, info = self.env.reset(seed=world, options=options)
        return obs, _copied(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if self._parts is not None:
            action = self._parts[int(action)]
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, float(reward), bool(terminated or truncated), False, _copied(info)


def _horizon(env: Any) -> int:
    """Most steps of an episode, from the environment's own numbers."""
    if isinstance(env, _popgym_envs.HigherLower):
        return int(env.deck_size) - 1  # the first card is dealt by reset
    if isinstance(env, _popgym_envs.Concentration):
        return int(env.episode_length)
    # The labyrinths end one step before their limit.
    return int(env.max_episode_length) - isinstance(env, _LABYRINTHS)


def _copied(info: dict[str, Any]) -> dict[str, Any]:
    """CountRecall and MultiarmedBandit go on writing into what they handed out."""
    return {key: copy(value) for key, value in info.items()}


@contextmanager
def _kept_global_randomness() -> Iterator[None]:
    """The labyrinths seed and use the global generators; leave those as they were."""
    state, numpy_state = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)
