"""A collector: environments, a copy of the policy and its memory, somewhere.

The same class plays in a process beside the learner and in a Ray actor. What it plays is a share:
one epoch's rollouts of some neighbouring lanes. A share and the weights decide the rollouts, so
it does not matter who plays it, and a share that was lost with its collector is played again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from amago.agent.agent import Agent, Parts
from amago.agent.policy import AgentPolicy
from amago.config import Config
from amago.envs.registry import MakeEnv, make_vector
from amago.process import prepare_process
from amago.replay.record import Record, record_of
from amago.rollout.collect import collect
from amago.rollout.exploration import Exploration
from amago.rollout.stats import RolloutRecord
from amago.scale.collect_weights import Weights, load
from amago.seeding import derive
from amago.training.run import make_exploration
from amago.types import Array, Curriculum, Trajectory, VectorEnv


@dataclass(frozen=True)
class Blueprint:
    """What a collector is built from."""

    config: Config
    seed: int
    steps_per_epoch: int
    threads: int
    """Threads of torch; 0: torch's own choice."""
    parts: Parts
    make_env: MakeEnv | None


@dataclass(frozen=True)
class LaneShare:
    """One epoch's rollouts of some lanes, to be played."""

    lanes: range
    epoch: int
    """Names the random streams of actions and exploration."""
    episodes: Array  # [lanes] rollouts that each lane has begun before
    curriculum: Curriculum
    exploration_steps: float
    """Actions that were executed per lane before."""


@dataclass(frozen=True)
class Harvest:
    """A share that was played."""

    share: LaneShare
    version: int
    """Updates that the learner had made when it gave these weights out."""
    records: list[Record]
    rollouts: list[RolloutRecord]
    episodes: Array
    curriculum: Curriculum
    num_actions: int
    seconds: float

    @property
    def num_steps(self) -> int:
        return sum(record.num_steps for record in self.records)


class Collector:
    """Plays shares with the weights that it was last given."""

    def __init__(self, blueprint: Blueprint) -> None:
        prepare_process(blueprint.threads)
        self.blueprint = blueprint
        self.version = -1
        self._agent: Agent | None = None
        self._played: dict[range, tuple[VectorEnv, Exploration]] = {}

    def collect(self, share: LaneShare, weights: Weights | None) -> Harvest:
        """The rollouts of a share; `weights` where they are newer than those of the last call."""
        begin = time.perf_counter()
        env, exploration = self._lanes(share.lanes)
        agent = self._acting(env, weights)
        env.episodes, env.curriculum = share.episodes, share.curriculum
        before = exploration.steps = round(share.exploration_steps * len(share.lanes))
        exploration.begin(share.epoch)
        # The streams of the first lanes are those of a run that collects by itself.
        first = share.lanes.start
        path = (share.epoch, first) if first else (share.epoch,)
        seed = derive(self.blueprint.seed, "acting", *path)
        policy = AgentPolicy(agent, seed=seed, greedy=self.blueprint.config.agent.greedy)
        records: list[Record] = []

        def keep(trajectories: Sequence[Trajectory]) -> None:
            records.extend(record_of(trajectory, env.spec) for trajectory in trajectories)

        steps = self.blueprint.steps_per_epoch
        rollouts, _ = collect(env, policy, exploration, steps, keep)
        return Harvest(
            share,
            self.version,
            records,
            [replace(rollout, lane=rollout.lane + first) for rollout in rollouts],
            env.episodes.copy(),
            env.curriculum,
            exploration.steps - before,
            time.perf_counter() - begin,
        )

    def close(self) -> None:
        for env, _ in self._played.values():
            env.close()

    def _lanes(self, lanes: range) -> tuple[VectorEnv, Exploration]:
        """The environments of some lanes, made when they are first played here."""
        if lanes not in self._played:
            blueprint = self.blueprint
            env = make_vector(
                blueprint.config.env,
                seed=derive(blueprint.seed, "envs"),
                num_lanes=blueprint.config.env.num_lanes,
                make_env=blueprint.make_env,
                lanes=lanes,
            )
            seed = derive(blueprint.seed, "lanes", lanes.start) if lanes.start else blueprint.seed
            steps = blueprint.steps_per_epoch
            self._played[lanes] = env, make_exploration(blueprint.config, env, seed, steps)
        return self._played[lanes]

    def _acting(self, env: VectorEnv, weights: Weights | None) -> Agent:
        if self._agent is None:
            self._agent = Agent(env.spec, self.blueprint.config, self.blueprint.parts)
        if weights is not None and weights.version != self.version:
            load(self._agent, weights)
            self.version = weights.version
        assert self.version >= 0, "a collector plays with the learner's weights"
        return self._agent
