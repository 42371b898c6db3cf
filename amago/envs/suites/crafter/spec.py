"""Crafter's goals as amago.goals knows them, in Crafter's own words."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from amago.envs.suites.crafter import goals
from amago.envs.suites.crafter.instructions import MAX_GOALS
from amago.goals import GoalSpec
from amago.types import Array


class CrafterGoals(GoalSpec):
    """Reads and writes "travel to (10, 10)", and refuses what can never be achieved."""

    known: ClassVar[frozenset[goals.Goal]] = goals.GOALS

    def instruction(self, asked: str | ArrayLike) -> Array:
        given: Array = super().instruction(asked)
        for tokens in given.tolist():
            if tuple(tokens) not in self.known:
                raise ValueError(
                    f"no step of this world achieves {self.write([tokens])!r}; goals of Expanded "
                    "Crafter (build at, near) need --env.kwargs.expanded True"
                )
        return given

    def read(self, text: str) -> Array:
        return self.goals(goals.read(text))

    def write(self, given: ArrayLike) -> str:
        return goals.write(self.goals(given))


class ExpandedCrafterGoals(CrafterGoals):
    known: ClassVar[frozenset[goals.Goal]] = goals.EXPANDED_GOALS


def goal_spec(expanded: bool) -> GoalSpec:
    arguments: dict[str, Any] = {"kind": "token", "vocabulary": goals.VOCABULARY}
    cls = ExpandedCrafterGoals if expanded else CrafterGoals
    return cls(MAX_GOALS, goals.GOAL_SIZE, **arguments)
