"""Synchronous collecting: an epoch is played by all collectors, stored, then learned from."""

from __future__ import annotations

from amago.envs.joint import share_out
from amago.rollout.stats import RolloutRecord
from amago.scale.collect_counters import Counters
from amago.scale.collect_dispatch import Dispatch
from amago.scale.collect_weights import take
from amago.scale.collector import Harvest
from amago.training.run import TrainingRun

_POLL_SECONDS = 0.2


class SyncCollection:
    """Harvests are stored in the order of their lanes, whoever was first: the replay depends on
    seed and number of places alone."""

    def __init__(self, dispatch: Dispatch, num_places: int) -> None:
        self._dispatch, self._num_places = dispatch, num_places

    def collect(self, run: TrainingRun) -> tuple[list[RolloutRecord], int]:
        self._dispatch.publish(take(run.agent, run.learner.updates))
        places = share_out(self._num_places, run.env.num_lanes)
        counters = Counters(run)
        for lanes in places:
            self._dispatch.put(counters.share(lanes, run.epoch))
        played: dict[range, Harvest] = {}
        while len(played) < len(places):
            played |= {h.share.lanes: h for h in self._dispatch.step(_POLL_SECONDS)}
        harvests = [played[lanes] for lanes in places]
        for harvest in harvests:
            run.store.append_records(harvest.records)
            counters.add(harvest)
        counters.give_to(run)
        steps = sum(harvest.num_steps for harvest in harvests)
        return [rollout for harvest in harvests for rollout in harvest.rollouts], steps

    def timing(self) -> dict[str, float]:
        return {
            "collectors": self._dispatch.num_collectors,
            "collectors_lost": self._dispatch.replaced,
            "lag_mean": 0.0,
            "lag_max": 0,
        }

    def close(self) -> None:
        self._dispatch.fleet.close()
