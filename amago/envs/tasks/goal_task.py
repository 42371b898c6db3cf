"""Natively batched tasks that follow instructions."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any

import numpy as np

from amago import ragged
from amago.envs.tasks.base import BestPlay, Outcome, Task
from amago.goals import GoalSpec, ImpossibleGoalError, advance
from amago.ragged import Ragged
from amago.types import Array


class GoalTask(Task):
    """N worlds, each with an instruction; the reward is what `amago.goals.advance` says.

    What a step does must not depend on which goals are asked for: then a rollout that is
    played again in its world with another instruction differs in rewards and length alone.
    """

    horizon_ends_rollout = True
    goals: GoalSpec

    def allocate(self, num_lanes: int) -> None:
        super().allocate(num_lanes)
        spec = self.goals
        self.instruction = np.zeros((num_lanes, spec.max_goals, spec.size), spec.dtype)
        self.num_goals, self.progress = np.zeros((2, num_lanes), np.int64)
        self.achieved: Ragged = ragged.empty(num_lanes, spec.size, spec.dtype)

    @abstractmethod
    def build(self, lane: int, rng: np.random.Generator) -> Array:
        """Draw a world; return its instruction [n, size]."""

    @abstractmethod
    def achievable(self, lane: int) -> Array:
        """Every goal that can be achieved in a lane's world, [M, size]."""

    @abstractmethod
    def start(self, lanes: Array) -> None:
        """Put some lanes at the beginning of their worlds; their instructions are known."""

    @abstractmethod
    def move(self, action: Array) -> Ragged:
        """Take one action in every lane; all goals that it achieved."""

    @abstractmethod
    def best_steps(self, lane: int) -> Array:
        """The fewest steps by which each goal of a lane's instruction can be complete, [n]."""

    def best_play(self, world_seeds: Array) -> BestPlay:
        """One reward at the earliest step by which each goal can be complete."""
        worlds = copy(self)
        worlds.allocate(len(world_seeds))
        worlds.reset_lanes(np.arange(len(world_seeds)), world_seeds)
        steps = [worlds.best_steps(lane) for lane in range(len(world_seeds))]
        reward = np.zeros((len(steps), self.horizon))
        for earned, when in zip(reward, steps, strict=True):
            np.add.at(earned, when[when <= self.horizon] - 1, 1.0)
        last = np.array([when[-1] for when in steps])
        return BestPlay(reward, np.minimum(last, self.horizon), last <= self.horizon)

    def reset_lanes(self, lanes: Array, world_seeds: Array) -> None:
        for lane, seed in zip(lanes, world_seeds, strict=True):
            self._give(lane, self.build(lane, np.random.default_rng(int(seed))))
        self._restart(lanes)

    def instruct(self, lane: int, asked: str | Array) -> None:
        """Begin the rollout of a lane anew, in the same world, with another instruction."""
        instruction = self.goals.instruction(asked)
        possible = self.achievable(lane)
        for goal in instruction:
            if not (possible == goal).all(axis=1).any():
                raise ImpossibleGoalError(
                    f"expected goals that can be achieved in this world, got "
                    f"{self.goals.write(goal[None])}; {len(possible)} others can, such as "
                    f"{self.goals.write(possible[:3])}"
                )
        self._give(lane, instruction)
        self._restart(np.array([lane]))

    def goal_rows(self) -> dict[str, Any]:
        """The fields of a Timestep that instructions need, as copies."""
        return {
            "instruction": self.instruction.copy(),
            "num_goals": self.num_goals.copy(),
            "progress": self.progress.copy(),
            "achieved": self.achieved,
        }

    def step(self, action: Array) -> Outcome:
        self.achieved = self.move(action)
        self.time += 1
        after = advance(self.instruction, self.num_goals, self.progress, self.achieved)
        self.progress = after.progress
        terminated = after.complete | (self.time >= self.horizon)
        return after.reward, terminated, np.zeros(self.num_lanes, np.bool_), after.complete

    def _give(self, lane: int, instruction: Array) -> None:
        self.instruction[lane] = 0
        self.instruction[lane, : len(instruction)] = instruction
        self.num_goals[lane] = len(instruction)

    def _restart(self, lanes: Array) -> None:
        self.time[lanes] = self.progress[lanes] = 0
        self.achieved = ragged.clear(self.achieved, lanes)
        self.start(lanes)
