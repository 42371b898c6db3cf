"""Gymnasium vector environments in place of single ones: they bring their own lanes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

import gymnasium as gym

from amago.envs.gym_vector import GymVector
from amago.envs.settings import EnvSettings
from amago.envs.symbolic_grid import readable_space
from amago.types import VectorEnv

_GymVectorEnv = gym.vector.VectorEnv[Any, Any, Any]


class VectorMaker:
    """Makes lanes of a vector environment, or shares one that a user holds."""

    def __init__(
        self, make: Callable[[], _GymVectorEnv], held: _GymVectorEnv | None = None
    ) -> None:
        """`held` is what `make` returns where a user goes on using it."""
        self._make, self._keep_open = make, held is not None
        named = make if held is None else type(held.unwrapped)
        self.__qualname__ = getattr(named, "__qualname__", type(make).__name__)

    def __call__(self) -> gym.Env[Any, Any]:
        """The same as a single environment, which has spaces and cannot be played."""
        return self.one_lane()

    @cached_property
    def num_lanes(self) -> int:
        return self.one_lane().num_lanes

    def settings(self) -> dict[str, int]:
        """The numbers of lanes that a run has with it."""
        return {"env.num_lanes": self.num_lanes, "env.eval_lanes": self.num_lanes}

    def lanes(self, settings: EnvSettings, seed: int) -> VectorEnv:
        """All of its lanes."""
        for name in ("trials", "horizon", "instruction", "wrappers", "num_workers"):
            if getattr(settings, name):
                raise ValueError(
                    f"--env.{name.replace('_', '-')} does not go with a vector environment, which "
                    "makes its lanes itself; build it into them"
                )
        return GymVector(self._open(), seed)

    def one_lane(self) -> OneLane:
        with contextlib.closing(self._open()) as env:
            return OneLane(env)

    def _open(self) -> _GymVectorEnv:
        return _KeptOpen(self._make()) if self._keep_open else self._make()


class OneLane(gym.Env[Any, Any]):
    """The spaces and the name of one lane."""

    def __init__(self, env: _GymVectorEnv) -> None:
        self.observation_space = readable_space(env.single_observation_space)
        self.action_space = env.single_action_space
        self.num_lanes, self.spec = env.num_envs, env.spec
        self.name = type(env.unwrapped).__name__ if env.spec is None else env.spec.id


class _KeptOpen(gym.vector.VectorWrapper):
    """A user's own vector environment, which is not ours to close."""

    def close(self, **kwargs: Any) -> None: ...


def as_maker(env: Any) -> Any:
    """What a user gives as an environment: vector environments become VectorMakers.

    A function is called once to see what it makes.
    """
    if isinstance(env, gym.vector.VectorEnv):
        return VectorMaker(lambda: env, held=env)
    if isinstance(env, type):
        return VectorMaker(env) if issubclass(env, gym.vector.VectorEnv) else env
    if isinstance(env, gym.Env | VectorMaker) or not callable(env):
        return env
    made = env()
    if hasattr(made, "close"):
        made.close()
    return VectorMaker(env) if isinstance(made, gym.vector.VectorEnv) else env
