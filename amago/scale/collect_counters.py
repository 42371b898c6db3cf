"""What environments and exploration have done so far, counted while others play."""

from __future__ import annotations

import numpy as np

from amago.envs.lanes import furthest
from amago.scale.collector import Harvest, LaneShare
from amago.training.run import TrainingRun


class Counters:
    """A copy of a run's counters that harvests move on."""

    def __init__(self, run: TrainingRun) -> None:
        self.episodes = np.array(run.env.episodes)
        self._curriculum = run.env.curriculum
        self._exploration_steps = run.exploration.steps

    def share(self, lanes: range, epoch: int) -> LaneShare:
        """The next share of some lanes."""
        episodes = self.episodes[lanes.start : lanes.stop].copy()
        per_lane = self._exploration_steps / len(self.episodes)
        return LaneShare(lanes, epoch, episodes, self._curriculum, per_lane)

    def add(self, harvest: Harvest) -> None:
        lanes = harvest.share.lanes
        self.episodes[lanes.start : lanes.stop] = harvest.episodes
        self._exploration_steps += harvest.num_actions
        self._curriculum = furthest([self._curriculum, harvest.curriculum])

    def give_to(self, run: TrainingRun) -> None:
        run.env.episodes = self.episodes.copy()
        run.env.curriculum = self._curriculum
        run.exploration.steps = self._exploration_steps
