"""Crafter's goals as amago.goals knows them, in Crafter's own words."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from amago.envs.domains.crafter import goals
from amago.envs.domains.crafter.instructions import MAX_GOALS
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
                    "Crafter (build at, near) need an agent trained with --env.kwargs.expanded True"
                )
        return given

    def describe(self) -> str:
        return f"an instruction is 1 to {self.max_goals} goals"

    def read_goal(self, text: str) -> list[float]:
        return list(goals.read_goal(text))

    def write_goal(self, goal: Array) -> str:
        return goals.write_goal(goal.tolist())


class ExpandedCrafterGoals(CrafterGoals):
    known: ClassVar[frozenset[goals.Goal]] = goals.EXPANDED_GOALS


def goal_spec(expanded: bool, max_goals: int = MAX_GOALS) -> GoalSpec:
    arguments: dict[str, Any] = {
        "kind": "token",
        "vocabulary": goals.VOCABULARY,
        "repeats": True,
    }
    cls = ExpandedCrafterGoals if expanded else CrafterGoals
    return cls(max_goals, goals.GOAL_SIZE, **arguments)
