"""Environments of other interfaces: what they are, and what to do about it."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

_KINDS = {
    "pettingzoo": (
        "a PettingZoo environment, which has several agents, and amago trains one",
        "make a gymnasium.Env in which the other agents are part of the world, or use "
        "supersuit.pettingzoo_env_to_vec_env_v1 if all of them share one policy",
    ),
    "dm_env": (
        "a dm_env environment",
        "convert it with shimmy: shimmy.DmControlCompatibilityV0(env)",
    ),
    "dm_control": (
        "a dm_control environment",
        "convert it with shimmy: shimmy.DmControlCompatibilityV0(env)",
    ),
    "gym": (
        "an environment of old Gym, which Gymnasium replaced",
        "convert it with shimmy: shimmy.GymV26CompatibilityV0(env=env), or GymV21CompatibilityV0 "
        "where step() returns four values",
    ),
}
"""By the package of one of its base classes."""


def what_it_is(env: Any) -> tuple[str, str]:
    """A description of something that is no gymnasium.Env, and a remedy."""
    if isinstance(env, gym.vector.VectorEnv):
        return (
            "a vector environment",
            "hand it to amago.train or amago.evaluate, or its lanes to amago.envs.vector.GymVector",
        )
    cls = env if isinstance(env, type) else type(env)
    for base in cls.__mro__:
        known = _KINDS.get(base.__module__.partition(".")[0])
        if known is not None:
            return known
    if hasattr(env, "observation_spec") and hasattr(env, "action_spec"):
        return _KINDS["dm_env"]
    if hasattr(env, "possible_agents"):
        return _KINDS["pettingzoo"]
    if hasattr(env, "step") and hasattr(env, "reset"):
        return (
            f"{cls.__name__}, which has step() and reset() but is no gymnasium.Env",
            "derive it from gymnasium.Env; one that was made for old Gym can be converted: "
            + _KINDS["gym"][1].removeprefix("convert it with "),
        )
    return cls.__name__, "return an instance of gymnasium.Env"
