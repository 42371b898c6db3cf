"""The lanes of a run, cut into as many places as there are collectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from amago.envs.lanes import furthest
from amago.scale.collector import Harvest, Share
from amago.training.run import TrainingRun


def share_of(run: TrainingRun, lanes: range, epoch: int) -> Share:
    """The next share of some lanes, as the counters of the run are now."""
    return Share(
        lanes,
        epoch,
        run.env.episodes[lanes.start : lanes.stop].copy(),
        run.env.curriculum,
        run.exploration.steps / run.env.num_lanes,
    )


def count(run: TrainingRun, harvests: Sequence[Harvest]) -> None:
    """Move the counters of the run by what was played."""
    episodes = np.array(run.env.episodes)
    for harvest in harvests:
        lanes = harvest.share.lanes
        episodes[lanes.start : lanes.stop] = harvest.episodes
        run.exploration.steps += harvest.num_actions
    run.env.episodes = episodes
    run.env.curriculum = furthest([run.env.curriculum, *(h.curriculum for h in harvests)])
