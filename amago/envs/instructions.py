"""Any Gymnasium environment that reports achieved goals becomes one that follows instructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np

from amago.envs.values import flag_of
from amago.goals import GoalSpec, ImpossibleGoalError, advance, pad
from amago.types import Array

ACHIEVED, INSTRUCTION, PROGRESS = "achieved", "instruction", "progress"
"""Entries of an info dictionary: goals of this step; what is asked; how much of it is done."""


_MOST_WORLDS = 200
"""Worlds that are drawn for one that allows what is asked."""


class FollowInstructions(gym.Wrapper[Any, Any, Any, Any]):
    """Asks for goals and pays for them, whatever the environment itself would pay.

    The environment has an attribute `goals`, a GoalSpec. Its `reset` draws an instruction into
    info["instruction"] (text or goals), its `step` lists all goals that the step achieved in
    info["achieved"]; neither may depend on what is asked. `reset(options={"instruction":
    ...})` asks for something else in the same world. Vectors of lanes add this wrapper by
    themselves.
    """

    follows_instructions = True

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        spec = goals_of(env)
        if spec is None:
            raise ValueError(
                f"expected an attribute `goals`, an amago.goals.GoalSpec, in {env}; it says what "
                "instructions are made of"
            )
        self.goals: GoalSpec = spec

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        inner = {key: value for key, value in (options or {}).items() if key != INSTRUCTION}
        obs, info = self.env.reset(seed=seed, options=inner or None)
        asked = (options or {}).get(INSTRUCTION, info.get(INSTRUCTION))
        if asked is None:
            raise ValueError(
                f"expected info[{INSTRUCTION!r}] from reset(), text or goals, got the keys "
                f"{sorted(info)}; draw an instruction there, from the world's seed"
            )
        self._asked = self.goals.instruction(asked)
        self._instruction, self._num_goals = pad([self._asked], self.goals.max_goals)
        self._progress = np.zeros(1, np.int64)
        return obs, {**info, **self._report(self.goals.goals([]))}

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        obs, _, terminated, truncated, info = self.env.step(action)
        achieved = achieved_goals(self.goals, info)
        row = (np.array([0, len(achieved)]), achieved)
        after = advance(self._instruction, self._num_goals, self._progress, row)
        self._progress = after.progress
        complete = bool(after.complete[0])
        info = {**info, **self._report(achieved), "success": complete}
        ended, cut = flag_of(terminated), flag_of(truncated)
        return obs, float(after.reward[0]), ended or complete, cut, info

    def _report(self, achieved: Array) -> dict[str, Any]:
        return report(self._asked, int(self._progress[0]), achieved)


class Ask(gym.Wrapper[Any, Any, Any, Any]):
    """Asks for the same in every world of an environment that follows instructions."""

    def __init__(self, env: gym.Env[Any, Any], instruction: str) -> None:
        spec = goals_of(env)
        if spec is None:
            raise ValueError(
                f"expected an environment with instructions for {instruction!r}, got "
                f"{env.spec.id if env.spec else type(env.unwrapped).__name__}, which "
                "has no goals; docs/instructions.md shows how to give it some"
            )
        super().__init__(env)
        self._asked, self._text = spec.instruction(instruction), instruction
        self.redrawn = 0
        """Worlds so far in which it was impossible."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """A world in which the instruction is possible: that of the seed, or the first of those
        that the seed leads to."""
        options = {INSTRUCTION: self._asked, **(options or {})}
        for attempt in range(_MOST_WORLDS):
            try:
                return self.env.reset(seed=_world_seed(seed, attempt), options=options)
            except ImpossibleGoalError as error:
                self.redrawn += 1
                last = error
        raise ValueError(
            f"{self._text!r} is impossible in all of {_MOST_WORLDS} worlds; in the last one: {last}"
        )


def _world_seed(seed: int | None, attempt: int) -> int | None:
    """The seed of a world in place of one that did not allow what was asked."""
    if seed is None or attempt == 0:
        return seed
    return int(np.random.default_rng((seed, attempt)).integers(2**32))


def with_instructions(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """The environment, wrapped where it has goals and does not yet follow instructions."""
    if goals_of(env) is None or env.has_wrapper_attr("follows_instructions"):
        return env
    return FollowInstructions(env)


def goals_of(env: gym.Env[Any, Any]) -> GoalSpec | None:
    """What an environment's instructions are made of, if it has any."""
    goals = env.get_wrapper_attr("goals") if env.has_wrapper_attr("goals") else None
    return goals if isinstance(goals, GoalSpec) else None


def achieved_goals(spec: GoalSpec, info: Mapping[str, Any]) -> Array:
    """The different goals [n, size] that a step reports, none where it says nothing."""
    reported = info.get(ACHIEVED)
    if reported is None or len(reported) == 0:
        return spec.goals([])
    goals = spec.read(reported) if isinstance(reported, str) else spec.goals(reported)
    return goals if len(goals) == 1 else np.unique(goals, axis=0)


def report(asked: Array, progress: int, achieved: Array) -> dict[str, Any]:
    """What an info says. Lists, since Gymnasium's vectors cannot join arrays of many lengths."""
    return {INSTRUCTION: asked.tolist(), PROGRESS: progress, ACHIEVED: achieved.tolist()}
