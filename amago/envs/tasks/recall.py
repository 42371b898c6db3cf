"""Recall: see cues, wait, then say what they were, round after round."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from amago.envs.tasks.base import BestPlay, Outcome, Task, check_at_least
from amago.types import Array


class Recall(Task):
    """Rounds of `length` cues, `delay` blank steps and `length` answers, in the cues' order.

    A round's cues are drawn from the world's seed. A rollout is solved when every answer was
    right. Nothing but memory tells an answer.
    """

    cue_shape: tuple[int, ...] = ()
    """Shape of one cue, an array of small integers."""

    def __init__(self, length: int, delay: int, rounds: int) -> None:
        check_at_least(1, length=length, rounds=rounds)
        check_at_least(0, delay=delay)
        self.length, self.delay, self.rounds = length, delay, rounds
        self.round_steps = 2 * length + delay
        self.horizon = rounds * self.round_steps

    def allocate(self, num_lanes: int) -> None:
        super().allocate(num_lanes)
        self.cues = np.zeros((num_lanes, self.rounds, self.length, *self.cue_shape), np.int64)
        self.solved = np.zeros(num_lanes, np.bool_)
        self._lanes = np.arange(num_lanes)

    def reset_lanes(self, lanes: Array, world_seeds: Array) -> None:
        for lane, seed in zip(lanes, world_seeds, strict=True):
            self.draw_world(int(lane), np.random.default_rng(int(seed)))
        self.time[lanes] = 0
        self.solved[lanes] = True

    @abstractmethod
    def draw_world(self, lane: int, rng: np.random.Generator) -> None:
        """Fill `cues[lane]`, and whatever else a world holds."""

    @abstractmethod
    def score(self, action: Array, cue: Array) -> Array:
        """Share of each answer that is right, [N] in 0..1."""

    def best_play(self, world_seeds: Array) -> BestPlay:
        """Every answer right."""
        asked = np.arange(self.horizon) % self.round_steps >= self.length + self.delay
        reward = asked * np.float32(1 / (self.rounds * self.length))
        return BestPlay.whole_horizon(np.tile(reward.astype(np.float64), (len(world_seeds), 1)))

    @property
    def phase(self) -> tuple[Array, Array]:
        """Per lane the round (past the last at the end), and the step within it."""
        return self.time // self.round_steps, self.time % self.round_steps

    def current_cues(self) -> tuple[Array, Array, Array]:
        """Per lane the cue shown or asked for (any in between), is it shown, is it asked for."""
        number, step = self.phase
        running = number < self.rounds
        showing = running & (step < self.length)
        asking = running & (step >= self.length + self.delay)
        index = np.where(asking, step - self.length - self.delay, np.where(showing, step, 0))
        return self.cues[self._lanes, np.minimum(number, self.rounds - 1), index], showing, asking

    def step(self, action: Array) -> Outcome:
        cue, _, asking = self.current_cues()
        right = np.where(asking, self.score(action, cue), 0.0)
        self.solved &= ~asking | (right == 1.0)
        self.time += 1
        terminated = self.time >= self.horizon
        reward = (right / (self.rounds * self.length)).astype(np.float32)
        first = np.zeros(self.num_lanes, np.bool_)
        return reward, terminated, first, self.solved & terminated
