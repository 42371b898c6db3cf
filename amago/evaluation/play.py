"""The one way to play a policy: tests, references, tables, films and attention all use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from amago.agent.agent import Agent
from amago.agent.policy import AgentPolicy
from amago.envs.registry import MakeEnv, make_vector
from amago.envs.settings import EnvSettings
from amago.rollout.driver import drive
from amago.rollout.stats import RolloutRecord, RolloutTracker
from amago.seeding import derive
from amago.types import Curriculum, EnvSpec, Policy, Step, VectorEnv

_MAX_STEPS_WITHOUT_END = 100_000

Watcher = Callable[[Step], None]
"""Called with every step of a play, those of rollouts beyond the number asked for included."""


_MOST_EPISODES = 10**7


@dataclass(frozen=True)
class PlaySettings:
    """Which worlds are played, what is asked for there, and how the agent chooses actions."""

    episodes: int = 100
    """Rollouts to play."""
    num_lanes: int = 32
    """Most environments at a time."""
    world_seed: int = 0
    """Seed of the worlds."""
    action_seed: int = 0
    """Seed of sampled actions."""
    greedy: bool = False
    """Take the most likely action instead of sampling one."""
    discount: float | None = None
    """Act with the policy of this discount; unset: the agent's acting discount."""
    instruction: str | None = None
    """Ask for this in every world; unset: for what the environment's settings say."""
    curriculum: Curriculum = field(default_factory=dict)
    """How far the environment's own curriculum has come; playing does not move it."""

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ValueError(f"an evaluation needs at least 1 episode, got {self.episodes}")
        if self.episodes > _MOST_EPISODES:
            raise ValueError(
                f"an evaluation takes at most {_MOST_EPISODES:,} episodes, got {self.episodes}"
            )

    @classmethod
    def of_seed(cls, seed: int, **settings: Any) -> PlaySettings:
        """The worlds and sampled actions that one seed of a user stands for, whoever plays them."""
        worlds, actions = derive(seed, "eval envs"), derive(seed, "acting")
        return cls(world_seed=worlds, action_seed=actions, **settings)

    def env(self, settings: EnvSettings) -> EnvSettings:
        """The environment as it is played."""
        if self.instruction is None:
            return settings
        return replace(settings, instruction=self.instruction)

    @property
    def rollouts_per_lane(self) -> int:
        """At most; whoever begins so many rollouts later meets other worlds."""
        return -(-self.episodes // min(self.num_lanes, self.episodes))

    def one_rollout(self) -> PlaySettings:
        """The first rollout of the first lane alone."""
        return replace(self, episodes=1, num_lanes=1)


def make_lanes(
    env: EnvSettings, settings: PlaySettings, make_env: MakeEnv | None = None
) -> VectorEnv:
    """The lanes of a play, not more than there are rollouts."""
    num_lanes = min(settings.num_lanes, settings.episodes)
    seed = settings.world_seed
    lanes = make_vector(settings.env(env), seed=seed, num_lanes=num_lanes, make_env=make_env)
    lanes.curriculum = settings.curriculum
    return lanes


def make_policy(agent: Agent, settings: PlaySettings) -> AgentPolicy:
    """The agent as it acts in a play."""
    return AgentPolicy(
        agent, seed=settings.action_seed, greedy=settings.greedy, discount=settings.discount
    )


def play(
    policy: Policy,
    env: VectorEnv,
    episodes: int,
    *,
    first_rollout: int = 0,
    watchers: Sequence[Watcher] = (),
) -> list[RolloutRecord]:
    """Exactly `episodes` rollouts, shared out over the lanes beforehand.

    A fixed quota per lane keeps short rollouts from crowding out long ones. Every lane begins
    at its rollout `first_rollout`, so two policies on one environment meet the same worlds. Lanes
    whose quota is met play on unrecorded: a policy draws the actions of all lanes at once, so
    without them the other lanes would get other actions.
    """
    env.episodes = np.full_like(env.episodes, first_rollout)
    lanes = np.arange(env.num_lanes)
    quota = episodes // env.num_lanes + (lanes < episodes % env.num_lanes)
    tracker, records = RolloutTracker(env), []
    patience = max(_MAX_STEPS_WITHOUT_END, 2 * (env.spec.horizon or 0))
    since_end = 0
    for step in drive(env, policy):
        for watch in watchers:
            watch(step)
        since_end += 1
        for record in tracker.add(step):
            since_end = 0
            if quota[record.lane] > 0:
                quota[record.lane] -= 1
                records.append(record)
        if not quota.any():
            break
        if since_end > patience:
            raise RuntimeError(
                f"no episode of {env.spec.name} ended within {patience} steps; "
                "give it a limit with --env.horizon"
            )
    return records


def check_fits(trained: EnvSpec, given: EnvSpec) -> None:
    """ValueError unless a policy that was trained on one environment can act in the other.

    A policy that follows no instructions may be given some.
    """
    fits = (given.obs, given.action) == (trained.obs, trained.action)
    if not fits or trained.goals not in (None, given.goals):
        raise ValueError(
            f"the policy was trained on {trained.name} with {_spaces(trained)}, but "
            f"{given.name} has {_spaces(given)}"
        )


def _spaces(spec: EnvSpec) -> str:
    return f"observations {dict(spec.obs)}, actions {spec.action} and goals {spec.goals}"
